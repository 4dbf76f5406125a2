//! One MCP server: imported, started in its jail, and called.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Map, Value, json};
use talon_harness::{Builder, Supervisor, program};
use talon_proto::host::Outcome;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use super::list::{self, Remote, Server, text};
use super::{import, world};

/// As long as the harness waits at most: an interpreter that imports a hundred modules takes its time.
const START_TIMEOUT: &str = "55s";
/// As long for a server that is reached by its address. Only a limit for hangs.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(60);
/// How much of an answer or a log is quoted, in characters.
const QUOTED_CHARS: usize = 600;

/// How far a server came. What is missing after a failure was not reached.
#[derive(Debug, Default)]
pub struct Report {
    /// The editor's entry became a plugin's.
    pub imported: bool,
    /// Time from its start until it was ready, in microseconds.
    pub ready_us: Option<u64>,
    /// The protocol's revision that the bridge and the server agreed on.
    pub revision: Option<String>,
    /// Tools it offers.
    pub tools: usize,
    /// The call had the expected answer.
    pub answered: bool,
    /// What the jail grants it, with the places named instead of this machine's paths.
    pub grants: Vec<String>,
}

/// Runs a row. `service` is the address of the imitated services.
///
/// # Errors
/// What failed; the report says how far it came.
pub async fn run(
    row: &Value,
    rows: &[Value],
    packages: &Path,
    service: &str,
    report: &mut Report,
) -> Result<()> {
    let builder = Builder::new();
    let world = world::make(builder.scratch())?;
    let servers = packages.join("servers");
    let remote_port = free_port().await?.to_string();
    let places =
        [("world", text(&world)), ("service", service), ("packages", text(&servers)), ("port", &remote_port)];
    let server = list::server(row, &places)?;
    let _remote = match &server.remote {
        Some(remote) => Some(start_remote(remote, rows, &places, &builder, &servers).await?),
        None => None,
    };
    let mut entry = import::entry(&server, builder.scratch(), &servers).await?;
    report.imported = true;
    import::merge(&mut entry, &server.entry);
    entry.entry("start_timeout").or_insert_with(|| START_TIMEOUT.into());
    report.grants = grants(&entry, &places);

    let plugins = json!({ &server.name: entry });
    let mut builder = builder.tools(&format!("plugins: {plugins}"));
    for (name, value) in &server.environment {
        builder = builder.env(name, value);
    }
    let supervisor = builder.start().await;
    let outcome = call(&supervisor, &server, report).await;
    let log = supervisor.log();
    supervisor.stop().await;
    report.revision = revision(&log);
    outcome.map_err(|error| anyhow!("{error:#}; its log: {}", last(&log)))
}

async fn call(supervisor: &Supervisor, server: &Server, report: &mut Report) -> Result<()> {
    let shown = supervisor.client.show(&server.name).await;
    let plugin = shown.plugin.context("the plugin is not there")?;
    if plugin.state != "ready" {
        bail!("{}: {}", plugin.state, plugin.reason);
    }
    report.ready_us = plugin.instances.first().map(|instance| instance.start_to_ready_us);
    let actions = shown.capabilities.context("it has no capabilities")?.actions;
    // Those for resources and prompts are no tools.
    report.tools = actions.iter().filter(|action| !action.user_only).count();
    let arguments: Vec<(&str, String)> =
        server.call.args.iter().map(|(name, value)| (name.as_str(), argument(value))).collect();
    let arguments: Vec<(&str, &str)> =
        arguments.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = supervisor.client.call(&server.name, &server.call.action, &arguments).await;
    let said = format!("{}{}", answer.content, answer.structured_content);
    if answer.outcome() != Outcome::Ok || !said.contains(&server.call.expect) {
        let what = answer.outcome().as_str_name();
        bail!("{} answered {what} {} {}", server.call.action, answer.error, first(&said));
    }
    report.answered = true;
    Ok(())
}

/// The revision that the bridge logged.
fn revision(log: &str) -> Option<String> {
    let (_, rest) = log.split_once(" speaks revision ")?;
    Some(rest.chars().take_while(|letter| letter.is_ascii_digit() || *letter == '-').collect())
}

/// An argument as plugins take it.
fn argument(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The HTTP server of an installed package, in a jail with the machine's network.
async fn start_remote(
    remote: &Remote,
    rows: &[Value],
    places: &[(&str, &str)],
    builder: &Builder,
    servers: &Path,
) -> Result<Child> {
    let row = rows.iter().find(|row| list::name(row) == remote.package_of);
    let package = list::server(row.context("`package_of` names no row")?, places)?;
    let entry = import::entry(&package, builder.scratch(), servers).await?;
    std::fs::remove_file(builder.scratch().join("imported.yaml"))?;
    let command = entry["command"].as_str().context("the entry has no command")?;
    let script = entry["args"][0].as_str().context("the entry has no script")?;
    let installed = servers.join(&package.name);
    let mut child = Command::new(program("talon"));
    child.args(["jail", "run", "--network", "full", "--execute", text(&installed)]);
    for (name, value) in &remote.environment {
        child.args(["--env", &format!("{name}={value}")]);
    }
    child.arg("--").arg(command).arg(script).args(&remote.args);
    let log = std::fs::File::create(builder.scratch().join("remote.log"))?;
    let mut child =
        child.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true).spawn()?;
    let waited = tokio::time::timeout(REMOTE_TIMEOUT, listening(&mut child, places)).await;
    if !matches!(waited, Ok(Ok(()))) {
        let log = std::fs::read_to_string(builder.scratch().join("remote.log"))?;
        bail!("its HTTP server does not listen: {waited:?}: {}", last(&log));
    }
    Ok(child)
}

/// Nothing tells when a server listens: connects until it answers or has ended.
async fn listening(child: &mut Child, places: &[(&str, &str)]) -> Result<()> {
    let port = places.iter().find(|(name, _)| *name == "port").map_or("", |(_, port)| port);
    let mut pause = tokio::time::interval(Duration::from_millis(50));
    while TcpStream::connect(format!("127.0.0.1:{port}")).await.is_err() {
        if let Some(status) = child.try_wait()? {
            bail!("it ended with {status}");
        }
        pause.tick().await;
    }
    Ok(())
}

/// A port that was free a moment ago, for a server that takes none by itself.
async fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port())
}

/// The grants of an entry, such as `fs.read: {world}/notes`.
fn grants(entry: &Map<String, Value>, places: &[(&str, &str)]) -> Vec<String> {
    let Some(Value::Object(sandbox)) = entry.get("sandbox") else { return Vec::new() };
    let mut grants = Vec::new();
    for (key, value) in sandbox {
        match value {
            Value::Object(inner) => {
                grants.extend(inner.iter().map(|(name, value)| format!("{key}.{name}: {}", words(value))));
            }
            value => grants.push(format!("{key}: {}", words(value))),
        }
    }
    let named = |grant: String| {
        places.iter().fold(
            grant,
            |grant, (name, place)| {
                if place.is_empty() { grant } else { grant.replace(place, name) }
            },
        )
    };
    grants.into_iter().map(named).filter(|grant| !grant.ends_with(": ")).collect()
}

fn words(value: &Value) -> String {
    match value {
        Value::Array(values) => values.iter().map(argument).collect::<Vec<_>>().join(", "),
        value => argument(value),
    }
}

fn first(text: &str) -> String {
    text.chars().take(QUOTED_CHARS).collect()
}

fn last(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(QUOTED_CHARS * 3);
    text.chars().skip(skipped).collect()
}
