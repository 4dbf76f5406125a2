//! `docs/protocol.md` promises that a plugin can be written from it alone. `tests/perl` is one: in a language
//! without our helper, without a gRPC library, with hand-written protobuf. A change of the page's contract
//! shows here which plugins it breaks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use prost::Message;
use talon_proto::host::execute_update::Kind;
use talon_proto::host::{ExecuteRequest, Outcome, Progress};
use talon_proto::notices::{self, Notice};
use talon_proto::plugin::{Action, ToolResultResponse};
use talon_tests::{Builder, Client, Supervisor, args, cli, repository, skip};
use tokio_stream::StreamExt;

/// Where Debian's packages put what the plugin leans on.
const NEEDED: [(&str, &str); 2] =
    [("/usr/bin/perl", "perl"), ("/usr/share/perl5/Protocol/HTTP2/Server.pm", "libprotocol-http2-perl")];

/// As many calls as a host sends at once by default.
const AT_ONCE: u32 = 16;

fn is_missing(test: &str) -> bool {
    let lacks = NEEDED.iter().find(|(path, _)| !Path::new(path).exists());
    if let Some((path, package)) = lacks {
        skip(test, &format!("there is no {path} (tests/scripts/deps.sh test installs {package})"));
    }
    lacks.is_some()
}

fn plugin() -> PathBuf {
    repository().join("tests/perl")
}

async fn serving(more: &str) -> Supervisor {
    let supervisor = Builder::new().plugin("perl", &plugin(), &[], more).start().await;
    let perl = supervisor.client.plugin("perl").await;
    assert_eq!(perl.state, "ready", "{}\n{}", perl.reason, supervisor.log());
    supervisor
}

async fn content(client: &Client, action: &str, pairs: &[(&str, &str)]) -> String {
    let answer = client.call("perl", action, pairs).await;
    assert_eq!(answer.outcome(), Outcome::Ok, "{action} {pairs:?}: {answer:?}");
    answer.content
}

// Promises: OTHER-13
#[tokio::test]
async fn it_declares_and_answers_and_says_no() {
    if is_missing("it_declares_and_answers_and_says_no") {
        return;
    }
    let supervisor = serving("").await;
    let client = &supervisor.client;
    let shown = client.show("perl").await;
    let settings = shown.settings.expect("it has some");
    assert_eq!((settings.sandbox_mode.as_str(), settings.sandbox_profile.as_str()), ("enforce", "strict"));
    let declared = shown.capabilities.expect("it has some");
    let names: Vec<_> = declared.actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!((declared.name.as_str(), names), ("perl", vec!["match", "tick", "visit"]));
    // What was encoded by hand came out as it was meant, down to a field whose number takes two bytes.
    let found = &declared.actions[0];
    assert_eq!((found.read_only, found.destructive), (true, Some(false)));
    let parameters: Vec<_> =
        found.parameters.iter().map(|p| (p.name.as_str(), p.r#type.as_str(), p.required)).collect();
    assert_eq!(
        parameters,
        [("pattern", "string", true), ("text", "string", true), ("limit", "integer", false)]
    );
    assert_eq!(found.parameters[2].schema, r#"{"minimum":1,"maximum":100}"#);

    let answer = client.call("perl", "match", &[("pattern", "(ü)\\d+"), ("text", "ü1 ä2 ü333")]).await;
    assert_eq!(answer.content, "2 found: ü1, ü333");
    let structured: serde_json::Value = serde_json::from_str(&answer.structured_content).expect("it is JSON");
    assert_eq!(structured[1], serde_json::json!({"at": 6, "groups": ["ü"], "match": "ü333"}));
    // Far more than fits into what may be sent ahead of the host's leave.
    let long = "x".repeat(900_000);
    let answer = client.call("perl", "match", &[("pattern", "x+"), ("text", &long)]).await;
    assert!(answer.report.expect("every answer has one").bytes_in > 900_000, "{}", answer.content.len());

    let answer = client.call("perl", "match", &[("pattern", "("), ("text", "x")]).await;
    assert_eq!(answer.outcome(), Outcome::ToolError, "{answer:?}");
    assert!(answer.error.contains("this is no regular expression"), "{answer:?}");

    let stopped = supervisor.stop().await;
    assert!(stopped.log.contains("the process ended: exit code 0"), "{}", stopped.log);
    assert!(stopped.processes.is_empty() && stopped.sockets.is_empty(), "{stopped:?}");
}

#[tokio::test]
async fn it_serves_side_by_side_and_heeds_deadlines() {
    if is_missing("it_serves_side_by_side_and_heeds_deadlines") {
        return;
    }
    // A plugin that ignored the deadline in the header would be killed.
    let supervisor = serving("kill_overdue_after: 30s").await;
    let client = &supervisor.client;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..AT_ONCE {
        let client = client.clone();
        calls.spawn(async move {
            let text = format!("call {number} of many");
            let answer = content(&client, "match", &[("pattern", "\\d+"), ("text", &text)]).await;
            assert_eq!(answer, format!("1 found: {number}"));
        });
    }
    calls.join_all().await;

    let before = client.plugin("perl").await.instances[0].generation;
    let request = ExecuteRequest {
        plugin: "perl".to_owned(),
        action: "tick".to_owned(),
        args: args(&[("steps", "600")]),
        timeout_ms: 300,
        ..ExecuteRequest::default()
    };
    let answer = client.execute(request).await.expect("it is a good request");
    assert_eq!(answer.reason, "timed_out", "{answer:?}");
    client
        .wait_until("an end of the call in the plugin", async |client| {
            client.plugin("perl").await.instances[0].calls_in_flight == 0
        })
        .await;
    assert_eq!(content(client, "tick", &[("steps", "1")]).await, "counted to 1");
    assert_eq!(client.plugin("perl").await.instances[0].generation, before, "it was not restarted");
}

#[tokio::test]
async fn its_state_outlives_its_process() {
    if is_missing("its_state_outlives_its_process") {
        return;
    }
    let supervisor = serving("").await;
    let client = &supervisor.client;
    let mut visits = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let client = client.clone();
        visits.spawn(async move { content(&client, "visit", &[("name", "Ada")]).await });
    }
    let mut seen = visits.join_all().await;
    let mut expected: Vec<_> = (1..=AT_ONCE).map(|count| format!("visit {count} of Ada")).collect();
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected, "each visit counts once, though they came at once");

    client.stop("perl").await.expect("an operator may");
    client.start("perl").await.expect("an operator may");
    let next = AT_ONCE + 1;
    assert_eq!(content(client, "visit", &[("name", "Ada")]).await, format!("visit {next} of Ada"));
}

#[tokio::test]
async fn it_tells_how_far_its_calls_are() {
    if is_missing("it_tells_how_far_its_calls_are") {
        return;
    }
    let supervisor = serving("").await;
    let request = ExecuteRequest {
        plugin: "perl".to_owned(),
        action: "tick".to_owned(),
        args: args(&[("steps", "8")]),
        ..ExecuteRequest::default()
    };
    let mut client = supervisor.client.clone();
    let mut updates = client.raw().execute_streaming(request).await.expect("it streams").into_inner();
    let (mut told, mut done) = (Vec::<Progress>::new(), None);
    while let Some(update) = updates.next().await {
        match update.expect("the stream is whole").kind.expect("an update is one of these") {
            Kind::Progress(progress) => told.push(progress),
            Kind::Output(_) => {}
            Kind::Done(answer) => done = Some(answer),
        }
    }
    assert_eq!(done.expect("it ends with the answer").content, "counted to 8");
    assert!(!told.is_empty(), "there was no progress");
    for progress in told {
        assert_eq!(progress.total, Some(8.0));
        assert_eq!(progress.message, format!("step {}", progress.progress));
    }
}

/// The host announces how much it reads, and the plugin returns an error instead of sending more.
#[tokio::test]
async fn an_answer_that_would_be_too_large_is_an_error_of_its_own() {
    if is_missing("an_answer_that_would_be_too_large_is_an_error_of_its_own") {
        return;
    }
    let supervisor = serving("max_message_bytes: 256KiB").await;
    let long = "x".repeat(200_000);
    let answer = supervisor.client.call("perl", "match", &[("pattern", "x+"), ("text", &long)]).await;
    assert_eq!(answer.outcome(), Outcome::ToolError, "{:?}", answer.reason);
    assert_eq!(answer.error, "the answer would have more than 262144 bytes: ask for less");
}

/// Without an inherited socket it creates one, as the page says.
#[tokio::test]
async fn it_makes_a_socket_of_its_own() {
    if is_missing("it_makes_a_socket_of_its_own") {
        return;
    }
    let supervisor = serving("sandbox:\n  mode: \"off\"").await;
    assert_eq!(content(&supervisor.client, "tick", &[("steps", "1")]).await, "counted to 1");
}

#[tokio::test]
async fn settings_that_it_does_not_know_are_told_to_the_operator() {
    if is_missing("settings_that_it_does_not_know_are_told_to_the_operator") {
        return;
    }
    let supervisor = Builder::new()
        .plugin("perl", &plugin(), &[], "config:\n  colour: blue\nmax_restarts: 0")
        .start()
        .await;
    let perl = supervisor.client.plugin("perl").await;
    assert_eq!(perl.state, "refused", "{perl:?}");
    assert!(perl.reason.contains("there are no settings, and it was given colour"), "{}", perl.reason);
}

/// A person who starts it at a terminal gets an explanation.
#[tokio::test]
async fn without_the_cookie_it_explains_itself() {
    if is_missing("without_the_cookie_it_explains_itself") {
        return;
    }
    let run = tokio::process::Command::new(plugin().join("plugin.pl")).env_clear().output();
    let output =
        tokio::time::timeout(Duration::from_secs(60), run).await.expect("it ends").expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("talon exec"), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
}

fn page() -> String {
    std::fs::read_to_string(repository().join("docs/protocol.md")).expect("the page is there")
}

/// The fields of a message in our proto files, without those of messages inside it: name and number.
fn fields(message: &str) -> Vec<(String, u32)> {
    let files =
        ["opentalon/plugin/v1/plugin", "talon/plugin/v1/notices", "talon/state/v1/state", "plugin/goplugin"];
    let texts = files.map(|file| {
        let path = repository().join(format!("proto/{file}.proto"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    let opening = format!("message {message} {{");
    let text =
        texts.iter().find_map(|text| text.split_once(&opening)).unwrap_or_else(|| panic!("no {message}")).1;
    let body = text.split("\n}").next().expect("it is not empty");
    let field = |line: &str| {
        let (before, after) = line.trim().split_once(" = ")?;
        let name = before.split_whitespace().last()?;
        Some((name.to_owned(), after.split(';').next()?.parse().ok()?))
    };
    body.lines().filter(|line| !line.trim().starts_with("//")).filter_map(field).collect()
}

/// Each of the page's tables of fields has what the proto file has, and the methods are there.
// Promises: OTHER-13
#[test]
fn the_page_and_the_proto_files_agree() {
    let page = page();
    let mut tables = 0;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(message) =
            line.strip_prefix("| `").and_then(|rest| rest.strip_suffix("` | number | type | |"))
        else {
            continue;
        };
        // Sorted, since a table may tell the important ones first.
        let mut told: Vec<(String, u32)> = lines
            .by_ref()
            .skip(1)
            .map_while(|row| {
                let mut cells = row.strip_prefix("| `")?.split(" | ");
                Some((cells.next()?.trim_end_matches('`').to_owned(), cells.next()?.parse().ok()?))
            })
            .collect();
        let mut fields = fields(message);
        told.sort();
        fields.sort();
        assert_eq!(told, fields, "{message}");
        tables += 1;
    }
    assert_eq!(
        tables, 17,
        "Init, Capabilities, Action, JobProposal, Parameter, Execute and its answer, Media, a question and its answer, Notice, \
         Progress, CallOutput, ScriptStatus, PluginEvent, its acknowledgement and its refusal"
    );
}

/// The bytes that the page shows are what it says.
#[test]
fn the_pages_bytes_are_right() {
    let page = page();
    let bytes = "0A 02 63 31 12 02 68 69";
    let answer = ToolResultResponse { call_id: "c1".into(), content: "hi".into(), ..Default::default() };
    assert!(page.contains(&format!("`{bytes}`")), "{bytes}");
    assert_eq!(ToolResultResponse::decode(unhex(bytes).as_slice()), Ok(answer));
    assert!(page.contains("`C8 3E`, then `01`"));
    let action = Action::decode(unhex("C8 3E 01").as_slice()).expect("it is an action");
    assert_eq!(action.destructive, Some(true));
    let notice = Notice::decode(unhex("12 00").as_slice()).expect("it is a notice");
    assert!(page.contains("tag `12`, length `00`"));
    assert!(matches!(notice.kind, Some(notices::notice::Kind::CapabilitiesChanged(_))), "{notice:?}");
}

fn unhex(text: &str) -> Vec<u8> {
    text.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("two digits")).collect()
}

/// What the page promises of a plugin, the kit checks: this one keeps all of it, in its jail.
#[tokio::test]
async fn it_conforms() {
    if is_missing("it_conforms") {
        return;
    }
    let path = plugin();
    let path = path.to_str().expect("our paths are text");
    let output = cli(&["conformance", path, "--action", "tick steps=20", "--action", "visit name=Ada"]).await;
    let told =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}");
}
