//! The gateway's pages in Debian's Chromium: on a system that runs, and on a stand-in of the gateway that shows everything they can
//! (`tests/pages/server.py`). The stand-in serves the files of the source tree; `supervisor/gateway/src/pages/` has what serves them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Output;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use talon_tests::ask::with_agent;
use talon_tests::http::{Answer, send_tcp};
use talon_tests::provider::{Gate, Provider, ScriptedReply};
use talon_tests::{Builder, Supervisor, program, repository, skip, target};
use tokio::process::Command;
use tokio::time::timeout;

/// Only a limit for hangs.
const WAIT: Duration = Duration::from_secs(300);
const CHROMIUM: &str = "/usr/lib/chromium/chromium";

fn python() -> PathBuf {
    target().join("pages/python/bin/python")
}

/// Whether there is no browser, or nothing to drive it with; then the test is skipped by its name.
fn without_browser(test: &str) -> bool {
    let missing = !PathBuf::from(CHROMIUM).exists() || !python().exists();
    if missing {
        skip(test, "it needs Debian's chromium, and what tests/scripts/deps.sh test installs then");
    }
    missing
}

/// Runs a script of `tests/pages` to its end.
async fn script(name: &str, arguments: &[&str]) -> Output {
    let run = Command::new(python())
        .arg("-B")
        .arg(repository().join("tests/pages").join(name))
        .args(arguments)
        .kill_on_drop(true)
        .output();
    timeout(WAIT, run).await.expect("the script ends").expect("it starts")
}

fn assert_ok(output: &Output, log: &str) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}\n{log}", text(&output.stdout), text(&output.stderr));
}

// Promises: UI-10
#[tokio::test]
async fn the_chat_does_what_it_promises() {
    if !without_browser("the_chat_does_what_it_promises") {
        assert_ok(&script("functions.py", &["--chat"]).await, "");
    }
}

// Promises: UI-11, UI-15, UI-16, UI-17
#[tokio::test]
async fn the_control_ui_does_what_it_promises() {
    if !without_browser("the_control_ui_does_what_it_promises") {
        assert_ok(&script("functions.py", &["--control"]).await, "");
    }
}

// Promises: UI-12
#[tokio::test]
async fn axe_finds_nothing_in_any_view() {
    if !without_browser("axe_finds_nothing_in_any_view") {
        let axe = target().join("pages/node/node_modules/axe-core/axe.min.js");
        assert_ok(&script("accessibility.py", &[axe.to_str().unwrap()]).await, "");
    }
}

// Promises: UI-13
#[tokio::test]
async fn a_thousand_hostile_texts_stay_texts() {
    if !without_browser("a_thousand_hostile_texts_stay_texts") {
        assert_ok(&script("hostile.py", &["1000"]).await, "");
    }
}

/// What the model says to the last message. `halves`: how often it was asked for an answer that stops in the middle; once it is.
fn reply(question: &Value, halves: &AtomicUsize) -> ScriptedReply {
    let last =
        question["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    let text = last["content"].to_string();
    if last["role"] == "tool" {
        ScriptedReply::Text("It said so.".to_owned())
    } else if text.contains("call it") {
        let call = ("liar__echo".to_owned(), json!({"text": "hello from the page"}));
        ScriptedReply::ToolCalls(vec![call])
    } else if text.contains("slowly") {
        let first = "The first half".to_owned();
        match halves.fetch_add(1, Ordering::Relaxed) {
            0 => ScriptedReply::Paused(Gate::closed(), first, String::new()),
            _ => ScriptedReply::Text(first + " and the second."),
        }
    } else {
        ScriptedReply::Text("There are **three** of them.".to_owned())
    }
}

/// A gateway before an agent whose model says this.
async fn start() -> (Supervisor, Provider) {
    let halves = AtomicUsize::new(0);
    let provider = Provider::responding(move |question| reply(question, &halves)).await;
    let builder = Builder::new().plugin("liar", &program("misbehave"), &[], "");
    let builder = builder.config("gateway: { enabled: true, address: '127.0.0.1:0', max_role: operate }");
    let agent = "  confirm: { rules: [{ tool: liar.echo, ask: always }] }";
    (with_agent(builder, &provider, agent, "").start().await, provider)
}

// Promises: UI-14
#[tokio::test(flavor = "multi_thread")]
async fn both_pages_work_on_a_system_that_runs() {
    if without_browser("both_pages_work_on_a_system_that_runs") {
        return;
    }
    let (supervisor, _provider) = start().await;
    let status = supervisor.wait_gateway("the gateway serves", |status| status.state == "serving").await;
    let agent = supervisor.wait_agent("the agent serves", |status| status.state == "serving").await.pid;
    let opened = supervisor.cli(&["gateway", "open", "--scope", "operate"]).await;
    assert!(opened.status.success(), "{opened:?}");
    let link = String::from_utf8(opened.stdout).unwrap().trim().to_owned();
    assert_ok(
        &script("live.py", &[&link, &status.pid.to_string(), &agent.to_string()]).await,
        &supervisor.log(),
    );
    supervisor.stop().await;
}

// Promises: UI-5
#[tokio::test(flavor = "multi_thread")]
async fn pages_are_for_everybody_and_show_nothing_by_themselves() {
    let (supervisor, _provider) = start().await;
    let status = supervisor.wait_gateway("the gateway serves", |status| status.state == "serving").await;
    let address: SocketAddr = status.url.trim_start_matches("http://").parse().unwrap();
    let get = |path: &'static str, more: String| async move {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}Connection: close\r\n\r\n");
        send_tcp(address, &request).await
    };
    let header = |answer: &Answer, name: &str| {
        let found = answer.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        found.unwrap_or_default().trim().to_owned()
    };
    for page in ["/", "/chat"] {
        // Also with a session that holds no more: the page says so.
        let expired = format!("Cookie: talon_session_{}=talon_a_b\r\n", address.port());
        let answer = get(page, expired).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(header(&answer, "content-type").starts_with("text/html"));
        assert!(header(&answer, "content-security-policy").contains("trusted-types 'none'"));
        assert_eq!(header(&answer, "cache-control"), "no-cache");
        let script =
            answer.body.split('"').find(|part| part.ends_with("/main.js")).expect("a script").to_owned();
        let request = format!("GET {script} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let script = send_tcp(address, &request).await;
        assert_eq!(script.status, 200);
        assert_eq!(header(&script, "cache-control"), "public, max-age=31536000, immutable");
    }
    // A foreign name gets nothing, and what is behind the pages is not theirs to show.
    assert_eq!(get("/api/session", String::new()).await.status, 401);
    assert_eq!(get("/", "Upgrade: websocket\r\n".to_owned()).await.status, 401);
    let foreign =
        send_tcp(address, "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").await;
    assert_eq!(foreign.status, 403);
    supervisor.stop().await;
}
