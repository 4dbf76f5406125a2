//! MCP servers as plugins: jailed behind `talon-mcp-bridge`, by the book and with every lie that one can
//! tell.
//!
//! The servers lie in `tests/mcp/`, in Python without any library.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use talon_proto::host::{ApproveRequest, ExecuteResponse};
use talon_proto::plugin::Action;
use talon_tests::{Builder, Client, Mcp, ServerScript, Supervisor, meta, program, repository, skip};
use tokio_stream::StreamExt as _;

const PYTHON: &str = "/usr/bin/python3";

/// Short enough that a server which never answers is given up soon; long enough for a loaded machine.
const SHORT_START: &str = "start_timeout: 15s\nmax_restarts: 0";

fn is_missing(test: &str) -> bool {
    let missing = !Path::new(PYTHON).exists();
    if missing {
        skip(test, &format!("there is no {PYTHON} (tests/scripts/deps.sh test installs python3)"));
    }
    missing
}

fn fixture(name: &str) -> PathBuf {
    repository().join("tests/mcp").join(name)
}

/// A builder with a server behind the bridge.
fn with(builder: Builder, name: &str, args: &[&str], more: &str) -> Builder {
    // Where every uid can read it: a checkout may be below a home directory.
    let server = builder.scratch().install(&fixture("server.py"), "server.py");
    builder.plugin(name, &server, args, &format!("dialect: mcp\n{more}"))
}

async fn started(args: &[&str], more: &str) -> Supervisor {
    with(Builder::new(), "mcp", args, more).start().await
}

async fn ready(client: &Client) {
    let plugin = client.plugin("mcp").await;
    assert_eq!(plugin.state, "ready", "{}\n{:#?}", plugin.reason, client.logs("mcp").await);
}

async fn actions(client: &Client) -> Vec<Action> {
    client.show("mcp").await.capabilities.expect("it has capabilities").actions
}

fn action<'a>(actions: &'a [Action], name: &str) -> &'a Action {
    actions.iter().find(|action| action.name == name).unwrap_or_else(|| panic!("no {name} in {actions:#?}"))
}

/// The content without its envelope.
fn said(answer: &ExecuteResponse) -> &str {
    assert!(answer.error.is_empty(), "{answer:?}");
    &answer.content
}

/// Every ending leaves nothing behind.
async fn ends_clean(supervisor: Supervisor) {
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    assert_eq!(stopped.processes, Vec::<u32>::new());
    assert_eq!(stopped.sockets, Vec::<PathBuf>::new());
}

/// The plugin does not become ready, for a reason that holds the words, and its neighbour serves on.
async fn fails_saying(args: &[&str], more: &str, words: &[&str]) {
    let builder = Builder::new().plugin("hello", &program("hello"), &[], "");
    let supervisor = with(builder, "mcp", args, more).start().await;
    let ended = |p: &talon_proto::host::Plugin| matches!(p.state.as_str(), "failed" | "refused");
    let plugin = supervisor.client.wait_for("mcp", "failed or refused", ended).await;
    for word in words {
        assert!(plugin.reason.contains(word), "{word:?} is not in the reason: {}", plugin.reason);
    }
    assert!(plugin.reason.len() < 4096, "a reason of {} bytes is not bounded", plugin.reason.len());
    let neighbour = supervisor.client.call("hello", "greet", &[("name", "neighbour")]).await;
    assert!(neighbour.content.contains("neighbour"), "{neighbour:?}");
    ends_clean(supervisor).await;
}

// Promises: MCP-1
#[tokio::test]
async fn servers_of_both_revisions_are_plugins() {
    if is_missing("servers_of_both_revisions_are_plugins") {
        return;
    }
    for revision in ["old", "new"] {
        let supervisor = started(&["--revision", revision], "").await;
        let client = &supervisor.client;
        ready(client).await;
        let actions = actions(client).await;
        assert_eq!(actions.len(), 14, "all pages are read: {actions:#?}");
        let echo = action(&actions, "echo");
        assert_eq!(echo.description, "Echo a text\nGives back what it gets.");
        assert!(echo.read_only && echo.parameters[0].required);
        let area = action(&actions, "shape_-2earea");
        assert_eq!(area.destructive, Some(false));
        assert!(area.output_schema.contains("\"area\""), "{}", area.output_schema);
        let types: Vec<_> = area.parameters.iter().map(|p| (p.name.as_str(), p.r#type.as_str())).collect();
        assert_eq!(types, [("shape", "object"), ("times", "integer"), ("exact", "boolean")]);
        assert!(area.parameters[0].schema.contains("sides") && !area.parameters[0].schema.contains("$ref"));
        assert_eq!(action(&actions, "wipe").destructive, Some(true));

        let answer = client.call("mcp", "echo", &[("text", "hi there")]).await;
        assert_eq!(said(&answer), "hi there");
        let nested = [("shape", "{\"sides\": [2, 3.5]}"), ("times", "2"), ("exact", "true")];
        let answer = client.call("mcp", "shape_-2earea", &nested).await;
        assert_eq!(said(&answer), r#"{"exact": true, "shape": {"sides": [2, 3.5]}, "times": 2}"#);
        assert_eq!(answer.structured_content, r#"{"area":14.0}"#);
        let answer = client.call("mcp", "mixed", &[]).await;
        let dropped = "[not passed on: 1 image (this client takes text only)";
        for part in ["before", "[image image/png, 5 bytes]", dropped, "file:///a.txt", "a note"] {
            assert!(said(&answer).contains(part), "{part:?} is not in {}", answer.content);
        }
        let answer = client.call("mcp", "anything", &[("arguments", "{\"a\":{\"b\":[1]}}")]).await;
        assert_eq!(said(&answer), r#"{"a": {"b": [1]}}"#);
        ends_clean(supervisor).await;
    }
}

#[tokio::test]
async fn a_server_that_says_no_is_heard() {
    if is_missing("a_server_that_says_no_is_heard") {
        return;
    }
    let supervisor = started(&["--revision", "both"], "").await;
    let client = &supervisor.client;
    ready(client).await;
    for (name, says) in [
        ("fail", "there is no such thing"),
        ("refuse", "error -32602: not these arguments"),
        ("ask", "input from a person"),
    ] {
        let answer = client.call("mcp", name, &[]).await;
        assert!(answer.error.contains(says), "{name}: {answer:?}");
    }
    let answer = client.call("mcp", "shape_-2earea", &[("shape", "[1]")]).await;
    assert!(answer.error.contains("shape"), "{answer:?}");
    ends_clean(supervisor).await;
}

// Promises: MCP-3
#[tokio::test]
async fn the_server_sees_none_of_the_handshake() {
    if is_missing("the_server_sees_none_of_the_handshake") {
        return;
    }
    let supervisor = started(&[], "env:\n  MY_KEY: mine").await;
    let answer = supervisor.client.call("mcp", "env", &[]).await;
    let names: Vec<String> = serde_json::from_str(said(&answer)).expect("a list");
    for name in ["HOME", "MY_KEY", "PATH", "TMPDIR"] {
        assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
    }
    let ours =
        |name: &String| name.contains("PLUGIN_") || name.contains("COOKIE") || name == "TALON_LISTEN_FD";
    assert!(!names.iter().any(ours), "{names:?}");
    ends_clean(supervisor).await;
}

// Promises: MCP-4
#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_there() {
    if is_missing("a_call_that_is_given_up_is_cancelled_there") {
        return;
    }
    for revision in ["old", "new"] {
        let more = "actions:\n  block: { timeout: 500ms }";
        let supervisor = started(&["--revision", revision], more).await;
        let client = &supervisor.client;
        let late = client.call("mcp", "block", &[]).await;
        assert_eq!(late.reason, "timed_out", "{late:?}");
        let told = async |client: &Client| {
            client.call("mcp", "cancelled", &[]).await.content.contains("requestId")
                || client.call("mcp", "cancelled", &[]).await.content.contains("does not wait")
        };
        client.wait_until("a cancellation", told).await;
        ready(client).await;
        ends_clean(supervisor).await;
    }
}

#[tokio::test]
async fn progress_is_told_as_events() {
    use tokio_stream::StreamExt;

    if is_missing("progress_is_told_as_events") {
        return;
    }
    let supervisor = started(&[], "").await;
    let client = &supervisor.client;
    let mut events = client.events("mcp").await;
    let answer = client.call("mcp", "steps", &[("count", "3")]).await;
    assert_eq!(said(&answer), "done");
    let seen = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        while let Some(Ok(event)) = events.next().await {
            if event.kind == "call_progress" {
                return event;
            }
        }
        panic!("the events ended");
    });
    let event = seen.await.expect("an event comes");
    assert!(format!("{event:?}").contains("total"), "{event:?}");
    ends_clean(supervisor).await;
}

#[tokio::test]
async fn changed_tools_are_read_anew() {
    if is_missing("changed_tools_are_read_anew") {
        return;
    }
    for revision in ["old", "new"] {
        let supervisor = started(&["--revision", revision, "--lie", "rename"], "").await;
        let client = &supervisor.client;
        ready(client).await;
        assert_eq!(said(&client.call("mcp", "change", &[]).await), "changed");
        let renamed =
            async |client: &Client| actions(client).await.iter().any(|action| action.name == "echo2");
        client.wait_until("a renamed tool", renamed).await;
        let answer = client.call("mcp", "echo2", &[("text", "under a new name")]).await;
        assert_eq!(said(&answer), "under a new name");
        assert_eq!(client.call("mcp", "echo", &[("text", "x")]).await.reason, "unknown_action");
        ends_clean(supervisor).await;
    }
}

#[tokio::test]
async fn config_chooses_tools_and_a_revision() {
    if is_missing("config_chooses_tools_and_a_revision") {
        return;
    }
    let more = "config:\n  tools: [echo, none]\n  protocol: \"2025-06-18\"";
    let supervisor = started(&[], more).await;
    let client = &supervisor.client;
    let names: Vec<_> = actions(client).await.into_iter().map(|action| action.name).collect();
    assert_eq!(names, ["echo"]);
    client.wait_log("mcp", "\"none\"").await;
    ends_clean(supervisor).await;
    for (config, says) in [
        ("tool: [echo]", "`tools`, `protocol`, `headers`"),
        ("protocol: \"2031-01-01\"", "2025-11-25, 2026-07-28"),
        ("headers: { X-Key: s3cret }", "without a url"),
    ] {
        fails_saying(&[], &format!("{SHORT_START}\nconfig: {{ {config} }}"), &[says]).await;
    }
}

#[tokio::test]
async fn two_plugins_may_have_tools_of_one_name() {
    if is_missing("two_plugins_may_have_tools_of_one_name") {
        return;
    }
    let builder = with(Builder::new(), "one", &["--revision", "old"], "");
    let supervisor = with(builder, "two", &["--revision", "new"], "").start().await;
    for name in ["one", "two"] {
        let answer = supervisor.client.call(name, "echo", &[("text", name)]).await;
        assert_eq!(said(&answer), name);
    }
    ends_clean(supervisor).await;
}

macro_rules! served_in_spite_of {
    ($($name:ident: $($arg:literal)+;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                if is_missing(stringify!($name)) {
                    return;
                }
                let supervisor = started(&[$($arg),+], "").await;
                ready(&supervisor.client).await;
                for text in ["one", "two"] {
                    let answer = supervisor.client.call("mcp", "echo", &[("text", text)]).await;
                    assert_eq!(said(&answer), text);
                }
                ends_clean(supervisor).await;
            }
        )*
    };
}

served_in_spite_of! {
    a_banner_is_tolerated: "--lie" "banner";
    a_banner_of_100_000_lines_is_tolerated: "--lie" "banner-flood";
    a_flood_of_standard_error_is_tolerated: "--lie" "stderr-flood";
    answers_to_nobody_are_dropped: "--lie" "other-ids";
    ids_may_come_back_as_texts: "--lie" "string-ids";
    a_server_that_ignores_what_it_does_not_know_is_asked_in_the_old_way: "--lie" "mute-discover";
    a_server_that_ends_at_what_it_does_not_know_is_started_again: "--lie" "exit-on-discover";
    a_server_that_ignores_sigterm_is_ended: "--lie" "ignores-term";
}

// Promises: MCP-28
#[tokio::test]
async fn a_server_that_starts_slowly_is_started_once() {
    if is_missing("a_server_that_starts_slowly_is_started_once") {
        return;
    }
    // The probe is open for a quarter of the start timeout, and both requests for three quarters.
    for revision in ["old", "new"] {
        let supervisor = started(&["--revision", revision, "--slow", "6"], "start_timeout: 15s").await;
        let client = &supervisor.client;
        ready(client).await;
        assert_eq!(said(&client.call("mcp", "echo", &[("text", "at last")]).await), "at last");
        assert_eq!(client.plugin("mcp").await.deaths, 0);
        let lines = client.logs("mcp").await;
        let starts = lines.iter().filter(|line| line.contains("I was started")).count();
        assert_eq!(starts, 1, "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("asked initialize as well")), "{lines:#?}");
        ends_clean(supervisor).await;
    }
}

// Promises: MCP-28
#[tokio::test]
async fn what_an_older_server_says_of_the_probe_is_one_line_of_its_log() {
    if is_missing("what_an_older_server_says_of_the_probe_is_one_line_of_its_log") {
        return;
    }
    let supervisor = started(&["--lie", "reports-unknown"], "").await;
    ready(&supervisor.client).await;
    supervisor.client.wait_log("mcp", "config.protocol").await;
    let lines = supervisor.client.logs("mcp").await;
    assert!(!lines.iter().any(|line| line.contains("literal_error")), "{lines:#?}");
    ends_clean(supervisor).await;
}

// Promises: MCP-5
#[tokio::test]
async fn a_banner_is_logged_up_to_a_bound() {
    if is_missing("a_banner_is_logged_up_to_a_bound") {
        return;
    }
    let supervisor = started(&["--lie", "banner-flood"], "").await;
    supervisor.client.wait_log("mcp", "are not shown").await;
    let lines = supervisor.client.logs("mcp").await;
    let banner = lines.iter().filter(|line| line.contains("of my banner")).count();
    assert!((1..=100).contains(&banner), "{banner} lines");
    ends_clean(supervisor).await;
}

// Promises: MCP-5
#[tokio::test]
async fn answers_out_of_order_find_their_calls() {
    if is_missing("answers_out_of_order_find_their_calls") {
        return;
    }
    let supervisor = started(&["--lie", "out-of-order"], "").await;
    let client = &supervisor.client;
    let call = async |text: &str| client.call("mcp", "echo", &[("text", text)]).await;
    let (one, two, three) = tokio::join!(call("one"), call("two"), call("three"));
    assert_eq!((said(&one), said(&two), said(&three)), ("one", "two", "three"));
    ends_clean(supervisor).await;
}

// Promises: MCP-5
#[tokio::test]
async fn an_answer_of_50_mb_is_an_error_and_the_server_goes_on() {
    if is_missing("an_answer_of_50_mb_is_an_error_and_the_server_goes_on") {
        return;
    }
    for (lie, text) in [("huge", "huge"), ("bomb-result", "bomb")] {
        let supervisor = started(&["--lie", lie], "limits: { memory_bytes: 256MiB }").await;
        let client = &supervisor.client;
        let answer = client.call("mcp", "echo", &[("text", text)]).await;
        assert!(answer.error.contains("too large"), "{answer:?}");
        let answer = client.call("mcp", "echo", &[("text", "small")]).await;
        assert_eq!(said(&answer), "small");
        let plugin = client.plugin("mcp").await;
        assert_eq!(plugin.deaths, 0, "{plugin:?}");
        ends_clean(supervisor).await;
    }
}

#[tokio::test]
async fn odd_tools_cost_nothing_but_themselves() {
    if is_missing("odd_tools_cost_nothing_but_themselves") {
        return;
    }
    let supervisor = started(&["--lie", "odd-tools"], "").await;
    let client = &supervisor.client;
    ready(client).await;
    let actions = actions(client).await;
    for name in ["echo", "bare", "_-n", "truth"] {
        action(&actions, name);
    }
    assert!(
        actions.iter().any(|a| a.name.starts_with("long_-2fxx") && a.name.contains("_-h")),
        "{actions:#?}"
    );
    ends_clean(supervisor).await;
}

// Promises: MCP-5
#[tokio::test]
async fn a_schema_of_500_kb_leaves_its_tool_usable() {
    if is_missing("a_schema_of_500_kb_leaves_its_tool_usable") {
        return;
    }
    let supervisor = started(&["--lie", "bomb-schema"], "").await;
    let client = &supervisor.client;
    ready(client).await;
    let actions = actions(client).await;
    let bomb = action(&actions, "bomb");
    for (index, why) in ["too large", "refers to itself", "outside of it"].into_iter().enumerate() {
        assert!(bomb.parameters[index].description.contains(why), "{:?}", bomb.parameters[index]);
    }
    let answer = client.call("mcp", "bomb", &[("fine", "x")]).await;
    assert!(answer.error.contains("unknown tool: bomb"), "it reaches the server: {answer:?}");
    ends_clean(supervisor).await;
}

// Promises: MCP-6
#[tokio::test]
async fn a_poisoned_description_is_shown_inert() {
    if is_missing("a_poisoned_description_is_shown_inert") {
        return;
    }
    let supervisor = started(&["--lie", "poison"], "").await;
    let client = &supervisor.client;
    ready(client).await;
    let actions = actions(client).await;
    let poison = action(&actions, "poison");
    let texts = format!("{} {}", poison.description, poison.parameters[0].description);
    assert!(texts.contains("Adds numbers."), "{texts:?}");
    for token in ["\u{1b}", "<|im_start|>", "<|im_end|>", "\u{202e}", "[/plugin_output]", "<tool_call>"] {
        assert!(!texts.contains(token), "{token:?} is in {texts:?}");
    }
    ends_clean(supervisor).await;
}

#[tokio::test]
async fn a_server_that_asks_for_a_model_is_refused_politely() {
    if is_missing("a_server_that_asks_for_a_model_is_refused_politely") {
        return;
    }
    let supervisor = started(&["--lie", "asks"], "").await;
    let client = &supervisor.client;
    ready(client).await;
    let all = async |client: &Client| {
        let heard: Vec<Value> =
            serde_json::from_str(&client.call("mcp", "heard", &[]).await.content).expect("a list");
        heard.len() == 3
    };
    client.wait_until("three answers", all).await;
    let heard: Vec<Value> =
        serde_json::from_str(&client.call("mcp", "heard", &[]).await.content).expect("a list");
    for answer in heard {
        match answer["id"].as_str() {
            Some("p") => assert_eq!(answer["result"], json!({})),
            _ => assert_eq!(answer["error"]["code"], -32601, "{answer}"),
        }
    }
    ends_clean(supervisor).await;
}

// Promises: MCP-7, GUARD-74
#[tokio::test]
async fn a_server_that_dies_takes_its_bridge_along_and_both_come_back() {
    if is_missing("a_server_that_dies_takes_its_bridge_along_and_both_come_back") {
        return;
    }
    let supervisor = started(&["--lie", "dies-in-call"], "max_restarts: 3\nbackoff_initial: 10ms").await;
    let client = &supervisor.client;
    let answer = client.call("mcp", "echo", &[("text", "x")]).await;
    assert_eq!(answer.reason, "died", "it is nobody's refusal: {answer:?}");
    // It declares itself read-only.
    assert!(answer.retryable, "{answer:?}");
    client.wait_for("mcp", "started again", |p| p.deaths == 1 && p.state == "ready").await;
    let lines = client.logs("mcp").await;
    for words in ["I cannot go on", "ended with exit code 7"] {
        assert!(lines.iter().any(|line| line.contains(words)), "{words:?} is not in {lines:#?}");
    }
    ends_clean(supervisor).await;
}

#[tokio::test]
async fn a_server_that_leaves_a_child_behind_is_over_all_the_same() {
    if is_missing("a_server_that_leaves_a_child_behind_is_over_all_the_same") {
        return;
    }
    let supervisor = started(&["--lie", "leaves-child"], "max_restarts: 3\nbackoff_initial: 10ms").await;
    let client = &supervisor.client;
    let answer = client.call("mcp", "echo", &[("text", "x")]).await;
    assert_eq!(answer.reason, "died", "{answer:?}");
    client.wait_for("mcp", "started again", |p| p.deaths == 1 && p.state == "ready").await;
    client.wait_log("mcp", "ended with exit code 7").await;
    ends_clean(supervisor).await;
}

#[tokio::test]
async fn a_server_that_stops_to_read_is_ended_and_started_again() {
    if is_missing("a_server_that_stops_to_read_is_ended_and_started_again") {
        return;
    }
    let more = "max_restarts: 3\nbackoff_initial: 10ms\nactions:\n  echo: { timeout: 500ms }";
    let supervisor = started(&["--lie", "stops-reading"], more).await;
    let client = &supervisor.client;
    // A call is the last thing that is read. The word that it was given up is not, and neither is another
    // call.
    let died = async |client: &Client| {
        if client.plugin("mcp").await.deaths > 0 {
            return true;
        }
        let answer = client.call("mcp", "echo", &[("text", "x")]).await;
        assert!(!answer.reason.is_empty() && answer.reason != "tool_error", "{answer:?}");
        false
    };
    client.wait_until("an end", died).await;
    client.wait_for("mcp", "started again", |p| p.state == "ready").await;
    client.wait_log("mcp", "takes no messages").await;
    ends_clean(supervisor).await;
}

macro_rules! never_ready {
    ($($name:ident: $lie:literal says $words:expr;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                if is_missing(stringify!($name)) {
                    return;
                }
                fails_saying(&["--lie", $lie], SHORT_START, &$words).await;
            }
        )*
    };
}

never_ready! {
    never_answers_initialize: "silent" says ["server.py", "did not answer `initialize`", "start_timeout"];
    reads_nothing: "no-input" says ["did not answer `initialize`"];
    speaks_a_revision_unknown_to_us: "unknown-revision" says ["server.py", "2031-01-01", "2025-11-25, 2026-07-28"];
    discovers_a_revision_unknown_to_us: "unknown-discover" says ["2031-01-01", "2026-07-28"];
    exits_at_once: "exit" says ["server.py", "exit code 3", "no key in the environment"];
    gives_no_list_of_tools: "garbage-list" says ["tools/list"];
    gives_the_same_page_again: "circle" says ["circles"];
    gives_pages_without_end: "endless-list" says ["no end"];
}

#[tokio::test]
async fn a_server_that_does_not_exist_is_named() {
    if is_missing("a_server_that_does_not_exist_is_named") {
        return;
    }
    let builder = Builder::new();
    let script = builder.scratch().script("nowhere", "#!/nowhere/interpreter\n");
    let supervisor =
        builder.plugin("mcp", &script, &[], &format!("dialect: mcp\n{SHORT_START}")).start().await;
    let ended = |p: &talon_proto::host::Plugin| matches!(p.state.as_str(), "failed" | "refused");
    let plugin = supervisor.client.wait_for("mcp", "failed or refused", ended).await;
    assert!(plugin.reason.contains("interpreter") || plugin.reason.contains("nowhere"), "{}", plugin.reason);
}

/// A server over HTTP, outside of any jail. It ends with its standard input.
struct Remote {
    /// Held until the end.
    _script: ServerScript,
    url: String,
}

impl Remote {
    fn start(args: &[&str]) -> Self {
        let script = ServerScript::start(PYTHON, &fixture("http_server.py"), args);
        Self { url: format!("http://127.0.0.1:{}/mcp", script.port(0)), _script: script }
    }

    async fn plugin(&self, more: &str) -> Supervisor {
        Builder::new().url("mcp", &self.url, more).start().await
    }
}

// Promises: MCP-8
#[tokio::test]
async fn a_server_is_reached_over_http() {
    if is_missing("a_server_is_reached_over_http") {
        return;
    }
    for revision in ["old", "new"] {
        let remote = Remote::start(&["--revision", revision, "--token", "Bearer s3cret"]);
        let config = "config:\n  headers: { Authorization: \"${MCP_TOKEN}\" }";
        let supervisor =
            Builder::new().url("mcp", &remote.url, config).env("MCP_TOKEN", "Bearer s3cret").start().await;
        let client = &supervisor.client;
        ready(client).await;
        assert_eq!(said(&client.call("mcp", "echo", &[("text", "hi")]).await), "hi");
        assert_eq!(said(&client.call("mcp", "stream", &[]).await), "streamed");
        let seen: Vec<Value> =
            serde_json::from_str(said(&client.call("mcp", "seen", &[]).await)).expect("a list");
        let call = seen.iter().find(|request| request["method"] == "tools/call").expect("it was called");
        if revision == "old" {
            assert_eq!((&call["version"], &call["session"]), (&json!("2025-11-25"), &json!("s1")), "{call}");
        } else {
            assert_eq!((&call["version"], &call["name"]), (&json!("2026-07-28"), &json!("echo")), "{call}");
            assert_eq!(call["session"], Value::Null, "{call}");
        }
        ends_clean(supervisor).await;
    }
}

// Promises: MCP-8
#[tokio::test]
async fn a_url_is_a_way_to_its_host_alone() {
    if is_missing("a_url_is_a_way_to_its_host_alone") {
        return;
    }
    let remote = Remote::start(&[]);
    let elsewhere = "sandbox: { allow: [\"127.0.0.1:1\"] }\nmax_restarts: 0\nstart_timeout: 15s";
    let supervisor = remote.plugin(elsewhere).await;
    let plugin = supervisor.client.wait_state("mcp", "failed").await;
    assert!(plugin.reason.contains("allow"), "the proxy's words are told: {}", plugin.reason);
}

macro_rules! never_ready_over_http {
    ($($name:ident: $lie:literal says $words:expr;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                if is_missing(stringify!($name)) {
                    return;
                }
                let remote = Remote::start(&["--lie", $lie]);
                let supervisor = remote.plugin(SHORT_START).await;
                let plugin = supervisor.client.wait_state("mcp", "failed").await;
                for word in $words {
                    assert!(plugin.reason.contains(word), "{word:?} is not in the reason: {}", plugin.reason);
                }
                assert!(plugin.reason.len() < 4096, "a reason of {} bytes is not bounded", plugin.reason.len());
                ends_clean(supervisor).await;
            }
        )*
    };
}

never_ready_over_http! {
    hangs_over_http: "hang" says ["127.0.0.1", "did not answer"];
    redirects_are_not_followed: "redirect" says ["307", "169.254.169.254", "not followed"];
    an_event_without_end_is_bounded: "endless" says ["127.0.0.1"];
    events_without_end_are_bounded: "flood" says ["127.0.0.1"];
    is_no_mcp_server: "html" says ["text/html", "MCP server"];
    is_out_of_service: "error" says ["503", "gone fishing", "120"];
}

#[tokio::test]
async fn who_wants_to_know_who_asks_is_understood() {
    if is_missing("who_wants_to_know_who_asks_is_understood") {
        return;
    }
    let remote = Remote::start(&["--token", "x"]);
    let supervisor = remote.plugin(SHORT_START).await;
    let plugin = supervisor.client.wait_state("mcp", "failed").await;
    assert!(plugin.reason.contains("config.headers"), "{}", plugin.reason);
}

#[tokio::test]
async fn large_and_late_answers_over_http_cost_their_call_alone() {
    if is_missing("large_and_late_answers_over_http_cost_their_call_alone") {
        return;
    }
    for revision in ["old", "new"] {
        let remote = Remote::start(&["--revision", revision, "--lie", "huge"]);
        let supervisor = remote.plugin("actions:\n  hang: { timeout: 500ms }").await;
        let client = &supervisor.client;
        ready(client).await;
        let answer = client.call("mcp", "echo", &[("text", "huge")]).await;
        assert!(answer.error.contains("larger than"), "{answer:?}");
        assert_eq!(client.call("mcp", "hang", &[]).await.reason, "timed_out");
        assert_eq!(said(&client.call("mcp", "echo", &[("text", "small")]).await), "small");
        ends_clean(supervisor).await;
    }
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_with_the_config() {
    for (url, says) in [
        ("ftp://mcp.example.org/", "https://HOST/PATH"),
        ("https://user:s3cret@mcp.example.org/", "config.headers"),
        ("https://mcp.example.org/#x", "fragment"),
    ] {
        let refused = Builder::new().url("mcp", url, "").start_refused().await;
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && text.contains(says), "{url}: {text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}

// Promises: MCP-30
#[tokio::test]
async fn a_server_of_5000_tools_is_bounded_and_any_of_them_can_be_named() {
    if is_missing("a_server_of_5000_tools_is_bounded_and_any_of_them_can_be_named") {
        return;
    }
    let supervisor = started(&["--lie", "many-tools"], "").await;
    let client = &supervisor.client;
    ready(client).await;
    assert_eq!(actions(client).await.len(), 1024);
    let line = client.wait_log("mcp", "are not offered").await;
    assert!(line.contains("3976 tools") && line.contains("config.tools"), "{line}");
    assert_eq!(said(&client.call("mcp", "echo", &[("text", "still")]).await), "still");
    ends_clean(supervisor).await;

    let supervisor = started(&["--lie", "many-tools"], "config: { tools: [t4980, echo] }").await;
    let names: Vec<_> = actions(&supervisor.client).await.into_iter().map(|action| action.name).collect();
    assert_eq!(names, ["echo", "t4980"]);
    ends_clean(supervisor).await;
}

// Promises: MCP-30
#[tokio::test]
async fn a_tool_whose_schema_changes_between_calls_waits_for_a_person() {
    if is_missing("a_tool_whose_schema_changes_between_calls_waits_for_a_person") {
        return;
    }
    let supervisor = started(&["--lie", "reschema"], "changed_tools: block").await;
    let client = &supervisor.client;
    ready(client).await;
    assert_eq!(said(&client.call("mcp", "echo", &[("text", "before")]).await), "before");
    assert_eq!(said(&client.call("mcp", "change", &[]).await), "changed");
    client
        .wait_until("a changed action", async |client: &Client| {
            client.plugin("mcp").await.changed_actions == ["echo"]
        })
        .await;
    let both = [("text", "x"), ("to", "somebody")];
    let answer = client.call("mcp", "echo", &both).await;
    assert!(answer.reason == "changed" && answer.error.contains("talon plugin approve mcp"), "{answer:?}");
    let request = ApproveRequest { name: "mcp".to_owned(), ..ApproveRequest::default() };
    client.clone().raw().approve(request).await.expect("it is approved");
    assert_eq!(said(&client.call("mcp", "echo", &both).await), "x");
    let answer = client.call("mcp", "echo", &[("text", "x")]).await;
    assert_eq!(answer.reason, "bad_arguments", "the new schema is the one that counts: {answer:?}");
    ends_clean(supervisor).await;
}

// Promises: MCP-46
#[tokio::test]
async fn new_resources_and_prompts_wait_for_a_person_who_approves_them() {
    if is_missing("new_resources_and_prompts_wait_for_a_person_who_approves_them") {
        return;
    }
    for revision in ["old", "new"] {
        let builder = Builder::new();
        let flag = builder.scratch().join("flags/context");
        let flags = flag.parent().expect("it is in a directory");
        std::fs::create_dir(flags).expect("it is ours");
        std::fs::set_permissions(flags, Permissions::from_mode(0o755)).expect("it is ours");
        let entry = format!("changed_tools: block\nsandbox: {{ fs: {{ read: [{}] }} }}", flags.display());
        let args = ["--revision", revision, "--context", flag.to_str().expect("our paths are text")];
        let supervisor = with(builder, "mcp", &args, &entry).start().await;
        let client = &supervisor.client;
        ready(client).await;
        let unknown = client.call("mcp", "_-resources_list", &[]).await;
        assert_eq!(unknown.reason, "unknown_action", "{unknown:?}");
        std::fs::write(&flag, "").expect("it is ours");
        assert!(supervisor.cli(&["plugin", "restart", "mcp"]).await.status.success());
        let new = [
            "_-prompts_get",
            "_-prompts_list",
            "_-resources_list",
            "_-resources_read",
            "_-resources_templates",
        ];
        let told = async |client: &Client| client.plugin("mcp").await.changed_actions == new;
        client.wait_until("five new actions", told).await;
        assert_eq!(client.call("mcp", "_-resources_list", &[]).await.reason, "changed");
        // Clients of `talon mcp` get nothing of it, and what was approved goes on.
        let mut mcp = Mcp::of(&supervisor, &[]);
        mcp.initialize("2025-11-25").await;
        assert_eq!(mcp.result("resources/list", json!({})).await["resources"], json!([]));
        assert_eq!(said(&client.call("mcp", "echo", &[("text", "x")]).await), "x");

        let approved =
            supervisor.cli(&["plugin", "approve", "mcp", "_-resources_list", "_-resources_read"]).await;
        let shown = String::from_utf8_lossy(&approved.stdout).into_owned();
        assert!(
            approved.status.success() && shown.contains("approved _-resources_list, _-resources_read"),
            "{shown}"
        );
        assert!(shown.contains("3 more changed actions"), "{shown}");
        assert!(said(&client.call("mcp", "_-resources_list", &[]).await).contains("note://one"));
        let approved = supervisor.cli(&["plugin", "approve", "mcp"]).await;
        let shown = String::from_utf8_lossy(&approved.stdout).into_owned();
        assert!(shown.contains("_-resources_templates") && !shown.contains("more changed"), "{shown}");
        assert_eq!(client.plugin("mcp").await.changed_actions, Vec::<String>::new());
        let listed = async |mcp: &mut Mcp| mcp.result("resources/list", json!({})).await["resources"].clone();
        while listed(&mut mcp).await == json!([]) {
            tokio::task::yield_now().await;
        }
        assert_eq!(listed(&mut mcp).await[0]["uri"], "mcp+note://one");
        mcp.close().await;
        ends_clean(supervisor).await;
    }
}

// Promises: MCP-49
#[tokio::test]
async fn changed_lists_of_resources_and_prompts_reach_clients() {
    if is_missing("changed_lists_of_resources_and_prompts_reach_clients") {
        return;
    }
    for revision in ["old", "new"] {
        let supervisor = started(&["--revision", revision, "--context", "/"], "").await;
        let client = &supervisor.client;
        ready(client).await;
        let mut events = client.events("mcp").await;
        let mut older = Mcp::of(&supervisor, &[]);
        older.initialize("2025-11-25").await;
        assert_eq!(older.result("resources/list", json!({})).await["resources"].as_array().unwrap().len(), 1);
        let mut newer = Mcp::of(&supervisor, &[]);
        let listen = json!({ "notifications": { "resourcesListChanged": true }, "_meta": meta(json!({})) });
        let subscription = newer.ask("subscriptions/listen", listen).await;
        newer.notified("notifications/subscriptions/acknowledged").await;
        // The subscription of the bridge is made in the background.
        if revision == "new" {
            client.wait_log("mcp", "follows the lists").await;
        }
        assert_eq!(said(&client.call("mcp", "change", &[]).await), "changed");
        older.notified("notifications/resources/list_changed").await;
        older.notified("notifications/prompts/list_changed").await;
        let news = newer.notified("notifications/resources/list_changed").await;
        assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], subscription);
        let listed = older.result("resources/list", json!({})).await;
        assert_eq!(listed["resources"][1]["uri"], "mcp+note://two", "{listed}");
        // A hundred notifications of the server are a few events.
        let mut published = 0;
        client.call("mcp", "cancelled", &[]).await;
        while let Some(event) = events.next().await {
            let event = event.expect("the stream is whole");
            published += u32::from(event.kind == "lists_changed");
            if event.kind == "call_finished"
                && event.fields.get("action").is_some_and(|name| name == "cancelled")
            {
                break;
            }
        }
        assert!((1..50).contains(&published), "{published}");
        older.close().await;
        newer.close().await;
        ends_clean(supervisor).await;
    }
}

// Promises: MCP-33
#[tokio::test]
async fn a_server_without_tools_is_a_plugin_if_it_has_something_else() {
    if is_missing("a_server_without_tools_is_a_plugin_if_it_has_something_else") {
        return;
    }
    for revision in ["old", "new"] {
        let args = ["--revision", revision, "--no-tools", "--context", "/"];
        let supervisor = started(&args, "").await;
        let client = &supervisor.client;
        ready(client).await;
        let read = client.call("mcp", "_-resources_read", &[("uri", "note://one")]).await;
        assert!(said(&read).contains("a note"), "{read:?}");
        let mut mcp = Mcp::of(&supervisor, &[]);
        mcp.initialize("2025-11-25").await;
        assert!(!mcp.tool_names().await.iter().any(|name| name.starts_with("mcp__")));
        let listed = mcp.result("resources/list", json!({})).await;
        assert_eq!(listed["resources"][0]["uri"], "mcp+note://one", "{listed}");
        mcp.close().await;
        ends_clean(supervisor).await;
    }
    // One that has nothing at all is refused, with what it said.
    fails_saying(&["--no-tools"], SHORT_START, &["does not tell its tools"]).await;
}

#[tokio::test]
async fn a_tool_that_is_described_anew_is_told_and_by_config_refused() {
    if is_missing("a_tool_that_is_described_anew_is_told_and_by_config_refused") {
        return;
    }
    for (word, blocks) in [("report", false), ("block", true)] {
        let supervisor = started(&["--lie", "redescribe"], &format!("changed_tools: {word}")).await;
        let client = &supervisor.client;
        ready(client).await;
        assert_eq!(said(&client.call("mcp", "echo", &[("text", "before")]).await), "before");
        assert_eq!(said(&client.call("mcp", "change", &[]).await), "changed");
        let told = async |client: &Client| client.plugin("mcp").await.changed_actions == ["echo"];
        client.wait_until("a changed action", told).await;
        let answer = client.call("mcp", "echo", &[("text", "after")]).await;
        if blocks {
            assert_eq!(answer.reason, "changed", "{answer:?}");
            assert!(answer.error.contains("talon plugin approve mcp"), "{answer:?}");
            // Other calls are not affected.
            assert_eq!(client.call("mcp", "cancelled", &[]).await.content, "[]");
            let request = ApproveRequest { name: "mcp".to_owned(), ..ApproveRequest::default() };
            client.clone().raw().approve(request).await.expect("it is approved");
        }
        assert_eq!(said(&client.call("mcp", "echo", &[("text", "after")]).await), "after");
        ends_clean(supervisor).await;
    }
}

// Promises: MCP-39
#[tokio::test]
async fn a_server_whose_code_cannot_be_loaded_is_started_once() {
    if is_missing("a_server_whose_code_cannot_be_loaded_is_started_once") {
        return;
    }
    let supervisor = started(&["--lie", "no-module"], "start_timeout: 30s\nbackoff_initial: 10ms").await;
    let plugin = supervisor.client.wait_for("mcp", "refused", |p| p.state == "refused").await;
    assert!(plugin.reason.contains("its code cannot be loaded"), "{}", plugin.reason);
    assert!(plugin.instances.iter().all(|instance| instance.generation <= 1), "{plugin:?}");
    let logged = supervisor.client.logs("mcp").await.concat();
    assert_eq!(logged.matches("started as pid").count(), 1, "{logged}");
    assert!(logged.contains("ModuleNotFoundError: No module named"), "{logged}");
    assert!(!logged.contains("trying it again"), "{logged}");
    ends_clean(supervisor).await;
}
