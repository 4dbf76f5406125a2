//! What the person on call looks at: `talon status`, `talon events --follow`, `talon doctor`.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use talon_tests::{Builder, cli, program};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

fn out(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One plugin that is well and one that cannot start.
fn half_well() -> Builder {
    let builder = Builder::new().plugin("hello", &program("hello"), &[], "");
    builder.plugin("jira", "/bin/true".as_ref(), &[], "max_restarts: 0\nbackoff_initial: 10ms")
}

// Promises: CLI-23
#[tokio::test]
async fn the_first_line_of_status_says_how_things_are() {
    let supervisor = half_well().start().await;
    let text = out(&supervisor.cli(&["status"]).await);
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with("serving: 2 plugins: 1 ready, 1 failed (jira: "), "{text}");
    let rows: Vec<&str> =
        text.lines().skip_while(|line| !line.starts_with("PLUGIN")).skip(1).take(2).collect();
    assert!(rows[0].starts_with("jira") && rows[1].starts_with("hello"), "the worst comes first: {text}");
    let attention = text.split("NEEDS ATTENTION").nth(1).expect("there is something to do");
    assert!(attention.contains("talon plugin logs jira"), "{text}");
    // Paths stay whole so that they can be copied, and so does the sentence, for `head -1`.
    assert!(text.lines().skip(1).all(|line| line.chars().count() <= 80 || line.contains('/')), "{text}");
}

// Promises: CLI-24
#[tokio::test]
async fn status_check_is_for_scripts() {
    let supervisor = half_well().start().await;
    assert_eq!(supervisor.cli(&["status"]).await.status.code(), Some(0), "looking at it is no failure");
    assert_eq!(supervisor.cli(&["status", "--check"]).await.status.code(), Some(1));
    let json = supervisor.cli(&["status", "--check", "--output", "json"]).await;
    let value: Value = serde_json::from_slice(&json.stdout).expect("one value");
    assert_eq!(
        (json.status.code(), value["attention"][0]["about"].as_str()),
        (Some(1), Some("jira")),
        "{value}"
    );
    for key in
        ["config_problem", "taken_over", "audit", "usage", "tier", "log_lines_dropped", "state_service"]
    {
        assert!(value.get(key).is_some(), "{key} is missing: {value}");
    }
    supervisor.client.stop("jira").await.expect("it stops");
    let well = supervisor.cli(&["status", "--check"]).await;
    assert_eq!(well.status.code(), Some(0), "one that is to be down is not missed: {}", out(&well));
}

/// `talon events`, and what it prints.
struct Events {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Events {
    fn follow(socket: &std::path::Path, more: &[&str]) -> Self {
        let mut child = Command::new(program("talon"))
            .arg("--socket")
            .arg(socket)
            .args(["events", "--output", "json"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("talon starts");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { child, lines }
    }

    /// The next event of that kind.
    async fn next(&mut self, kind: &str) -> Value {
        let found = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                let line = self.lines.next_line().await.expect("it can be read").expect("it goes on");
                let event: Value = serde_json::from_str(&line).expect("one JSON value a line");
                if event["kind"] == kind {
                    return event;
                }
            }
        });
        found.await.unwrap_or_else(|_| panic!("no event {kind}"))
    }

    /// Whether it listens already: there is no notification, so events are caused until one arrives.
    async fn hears(&mut self, supervisor: &talon_tests::Supervisor) {
        let mut calls = tokio::time::interval(Duration::from_millis(50));
        let heard = self.next("call_finished");
        tokio::pin!(heard);
        loop {
            tokio::select! {
                _ = &mut heard => return,
                _ = calls.tick() => {
                    supervisor.client.call("hello", "greet", &[("name", "x")]).await;
                }
            }
        }
    }
}

// Promises: CLI-25
#[tokio::test]
async fn events_go_on_over_a_restart_and_say_that_some_may_be_missing() {
    let supervisor = Builder::new().plugin("hello", &program("hello"), &[], "").start().await;
    let mut following = Events::follow(&supervisor.socket(), &["--follow"]);
    following.hears(&supervisor).await;
    let left = supervisor.end(nix::sys::signal::Signal::SIGKILL).await.left;
    let next = Builder::on_leftovers(left).plugin("hello", &program("hello"), &[], "").start().await;
    let gap = following.next("reconnected").await;
    assert!(gap["message"].as_str().is_some_and(|text| text.contains("may be missing")), "{gap}");
    following.hears(&next).await;
}

// Promises: CLI-25
#[tokio::test]
async fn without_follow_events_end_with_the_supervisor() {
    let supervisor = Builder::new().plugin("hello", &program("hello"), &[], "").start().await;
    let mut following = Events::follow(&supervisor.socket(), &[]);
    following.hears(&supervisor).await;
    supervisor.stop().await;
    let ended = tokio::time::timeout(Duration::from_secs(60), following.child.wait()).await;
    assert!(ended.expect("it ends").is_ok());
}

// Promises: CLI-26
#[tokio::test]
async fn doctor_says_of_each_thing_whether_it_is_well_and_what_to_do() {
    let supervisor = half_well().start().await;
    let config = supervisor.config().to_str().expect("text").to_owned();
    let output = supervisor.cli(&["doctor", "--config", &config, "--output", "json"]).await;
    let value: Value = serde_json::from_slice(&output.stdout).expect("one value");
    let checks = value["checks"].as_array().expect("a list");
    let check = |section: &str, what: &str| {
        let found = checks.iter().find(|check| check["section"] == section && check["check"] == what);
        found.unwrap_or_else(|| panic!("no {section}/{what}: {value:#}"))
    };
    for (section, what) in [
        ("configuration", "config"),
        ("files", "runtime dir"),
        ("files", "host.sock"),
        ("supervisor", "supervisor"),
        ("machine", "kernel"),
        ("machine", "clock"),
    ] {
        assert_eq!(check(section, what)["status"], "ok", "{:#}", check(section, what));
    }
    for program in [
        "talon-state",
        "talon-agent",
        "talon-gateway",
        "talon-top",
        "talon-watch",
        "talon-mcp",
        "talon-mcp-bridge",
        "talon-framed-bridge",
        "talon-service-bridge",
    ] {
        assert_eq!(check("programs", program)["status"], "ok", "{:#}", check("programs", program));
    }
    let plugins = check("supervisor", "plugins");
    assert!(
        plugins["status"] == "warn"
            && plugins["do"].as_str().is_some_and(|text| text.contains("talon status"))
    );
    for check in checks.iter().filter(|check| check["status"] == "fail") {
        assert!(
            check["do"] != "" || check["message"].as_str().is_some_and(|text| text.contains(';')),
            "{check:#}"
        );
    }
    let text = out(&supervisor.cli(&["doctor", "--config", &config]).await);
    for title in ["CONFIGURATION", "PROGRAMS", "SUPERVISOR", "SERVICE", "MACHINE", "SANDBOX"] {
        assert!(text.lines().any(|line| line == title), "{title}: {text}");
    }
}

// Promises: CLI-26
#[tokio::test]
async fn doctor_fails_where_something_that_is_asked_for_is_missing() {
    let scratch = talon_tests::Scratch::new();
    let text = format!(
        "runtime_dir: {0}/run\nstate:\n  data_dir: {0}/data\nplugins:\n  tools:\n    plugin_dir: {0}/none\n",
        scratch.path().display()
    );
    let config = scratch.write("talon.yaml", &text);
    let config = config.to_str().expect("text");
    let output = cli(&["doctor", "--config", config, "--socket", "/nonexistent.sock"]).await;
    let text = out(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("fail  plugin dir") && text.contains("do: create it"), "{text}");
}
