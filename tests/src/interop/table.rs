//! `docs/interop.md`, from what a run found.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::client::{self, CHECKS};
use super::list::{Client, Server};
use super::server;
use super::verdict::Verdict;

/// Above the tables.
const INTRODUCTION: &str = "\
# Other people's programs

What was tried with Talon as it is, each by its version. This page is written by a run (`make interop`), which fails when anything
differs from the lists in `tests/interop`. A row that is known to fail stands here with its reason; once it works, the run fails, too,
until the list says so.
";

/// Above the table of servers.
const SERVERS: &str = "
## MCP servers as plugins

Each is an entry of an editor's list, `npx PACKAGE@VERSION` or `uvx PACKAGE==VERSION`, given to `talon mcp import --install`. It runs in
its jail, and one call has to have a known answer. *Ready* is the time from its start until it was ready on the machine of the run, two
cores that are busy with other things: it is there to be compared with its neighbours. *Grants* is what its jail got: `fs.execute: packages` is
its own installed package, `world` a directory of the run. What the import did not grant stands in `tests/interop/servers.yaml` in the
row's `entry`. Where a service is called, it is a local imitation of it, and the way there leads through the proxy ([egress.md](egress.md)).

| server | package | imported | ready (s) | revision | tools | call | grants |
|---|---|---|---|---|---|---|---|
";

/// Above the table of clients.
const CLIENTS: &str = "
## MCP clients of `talon mcp`

Each is run by a small program in `tests/interop/clients` against two plugins: the tools of the tests, and the MCP project's own server
`everything`. *list*: it finds the tools. *call*: it gets the guarded answer. *error*: it sees that a tool said no. *progress*: it receives reports.
*cancel*: a call that it gives up ends in the plugin. *structured*: it gets structured content that fits the schema. *image*: it gets a picture.

| client | versions | list | call | error | progress | cancel | structured | image |
|---|---|---|---|---|---|---|---|---|
";

/// What tests in the tree build and run; `make interop` runs those tests before this page is written.
const PROGRAMS: &str = "
## go-plugin and OpenTalon programs

The tests build these from source, and `make interop` runs them before it writes this page.

| program | what is tried | tests |
|---|---|---|
| `PluginService` programs of HashiCorp's go-plugin 1.0.1, as Debian 12 packages it | cookie, service and several versions of the protocol, AutoMTLS with P-521, the broker, streamed output, death and end | `tests/tests/go_plugin.rs` |
| a go-plugin program with the services of another host (the KV example) | calls through `talon-service-bridge`, every kind of field, errors, deadlines, death, incomplete descriptors | `tests/tests/go_plugin_service.rs` |
| our SDK for Rust under a host of go-plugin 1.0.1 | start, AutoMTLS, calls, end | `tests/tests/go_plugin.rs` |
| OpenTalon's plugins, as its Go SDK serves them | settings, calls up to the limit, panics, `Init` old and new | `tests/tests/opentalon.rs` |
| OpenTalon's oldest plugins (v0.0.1, framed JSON) | calls through `talon-framed-bridge`, many at once, death, lies | `tests/tests/opentalon_v0.rs` |

The MCP project's own conformance suite is run as well, with Talon as the server and as the client, at each revision that a scenario has:
what passes, and what does not apply and why, is [a table for each](mcp.md#what-the-conformance-suite-finds).
";

/// A server's row.
#[derive(Debug)]
pub struct ServerRow {
    /// What the list says.
    pub server: Server,
    /// How far it came.
    pub report: server::Report,
    /// What that comes to.
    pub verdict: Verdict,
}

/// A client's row.
#[derive(Debug)]
pub struct ClientRow {
    /// What the list says.
    pub client: Client,
    /// What its program reported.
    pub report: client::Report,
}

/// The page.
#[must_use]
pub fn markdown(servers: &[ServerRow], clients: &[ClientRow]) -> String {
    let mut text = format!("{INTRODUCTION}{SERVERS}");
    let mut notes = String::new();
    for row in servers {
        let report = &row.report;
        let ready = report.ready_us.map_or_else(|| "no".to_owned(), seconds);
        let tools = if report.ready_us.is_some() { report.tools.to_string() } else { "–".to_owned() };
        let revision = report.revision.as_deref().unwrap_or("–");
        let call = format!("{} {}", row.server.call.action, if report.answered { "✓" } else { "✗" });
        let grants: Vec<String> = report.grants.iter().map(|grant| format!("`{grant}`")).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {ready} | {revision} | {tools} | `{call}` | {} |",
            row.server.name,
            package(&row.server),
            yes(report.imported),
            grants.join("<br>"),
        );
        if let Verdict::KnownToFail(why) = &row.verdict {
            let _ = writeln!(notes, "- {} is known to fail: {why}.", row.server.name);
        }
    }
    let works = servers.iter().filter(|row| row.verdict == Verdict::Works).count();
    let _ = writeln!(text, "\n{works} of {} work.", servers.len());
    if !notes.is_empty() {
        let _ = write!(text, "\n{notes}");
    }
    text.push_str(CLIENTS);
    text.push_str(&client_rows(clients));
    text.push_str(PROGRAMS);
    text
}

fn client_rows(clients: &[ClientRow]) -> String {
    let (mut text, mut notes) = (String::new(), String::new());
    let mut reasons = BTreeMap::<(&str, &str), Vec<&str>>::new();
    for ClientRow { client, report } in clients {
        let versions: Vec<String> = client
            .pypi
            .iter()
            .chain(&client.constraints)
            .chain(&client.npm)
            .map(|it| format!("`{it}`"))
            .collect();
        let _ = write!(text, "| {} | {} |", client.name, versions.join(", "));
        for check in CHECKS {
            let ok = report.get(check).is_some_and(|found| found.ok);
            let _ = write!(text, " {} |", yes(ok));
        }
        text.push('\n');
        for (check, why) in &client.lacks {
            reasons.entry((check, why)).or_default().push(&client.name);
        }
    }
    for ((check, why), names) in reasons {
        let names = if names.len() == clients.len() { "all".to_owned() } else { names.join(", ") };
        let _ = writeln!(notes, "- *{check}*, {names}: {why}.");
    }
    if !notes.is_empty() {
        let _ = write!(text, "\n{notes}");
    }
    text
}

/// The package and version that the editor's entry names.
fn package(server: &Server) -> String {
    if let Some(remote) = &server.remote {
        return format!("that of {}, by its address", remote.package_of);
    }
    let args = server.editor.get("args").and_then(|args| args.as_array());
    let words = args.into_iter().flatten().filter_map(|word| word.as_str());
    let named =
        words.filter(|word| word.len() > 1).find(|word| word[1..].contains('@') || word.contains("=="));
    let kind = if server.editor.get("command").is_some_and(|it| it == "npx") { "npm" } else { "PyPI" };
    let named = named.map_or_else(|| "–".to_owned(), |named| format!("{kind} `{named}`"));
    server.constraints.iter().fold(named, |named, constraint| format!("{named}, `{constraint}`"))
}

fn yes(it: bool) -> &'static str {
    if it { "✓" } else { "✗" }
}

/// Microseconds as seconds with one decimal.
fn seconds(us: u64) -> String {
    let tenths = us.div_ceil(100_000);
    format!("{}.{}", tenths / 10, tenths % 10)
}
