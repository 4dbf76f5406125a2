//! The supervisor's own log in each of its formats: what a line of a call says, and what happens when its
//! reader is gone or stuck.

use serde_json::Value;
use talon_proto::host::{ExecuteRequest, Outcome};
use talon_tests::journal::Journal;
use talon_tests::{Builder, Supervisor, args, until};

/// One call, and its id as the log has it.
async fn call(supervisor: &Supervisor, action: &str, text: &str) -> Outcome {
    let request = ExecuteRequest {
        plugin: "misbehave".to_owned(),
        action: action.to_owned(),
        args: if text.is_empty() { args(&[]) } else { args(&[("text", text)]) },
        call_id: "c1".to_owned(),
        context: [("session_id".to_owned(), "s1".to_owned())].into(),
        ..ExecuteRequest::default()
    };
    supervisor.client.execute(request).await.expect("the host answers").outcome()
}

/// Calls go well all the while.
async fn calls_until_a_line_is_dropped(supervisor: &Supervisor) {
    let mut calls = 0;
    while supervisor.client.status().await.log_lines_dropped == 0 {
        assert_eq!(call(supervisor, "echo", "hi").await, Outcome::Ok);
        calls += 1;
        assert!(calls < 10_000, "no line was dropped");
    }
}

fn objects(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"))).collect()
}

/// A supervisor whose journal is a socket in its scratch directory.
fn to_the_journal(level: &str) -> (Builder, std::path::PathBuf) {
    let builder = Builder::new();
    let socket = builder.scratch().join("journal.sock");
    let path = socket.to_str().expect("it is text").to_owned();
    let builder = builder.env("TALON_JOURNAL_SOCKET", &path).env("TALON_LOG", level);
    (builder.misbehave(&[], "").config("log: { format: journald }"), socket)
}

// Promises: TRACE-1
#[tokio::test]
async fn each_line_of_a_call_says_which_it_is_in_json() {
    let supervisor = Builder::new().misbehave(&[], "").env("TALON_LOG", "debug").start().await;
    assert_eq!(call(&supervisor, "echo", "hi").await, Outcome::Ok);
    assert_eq!(call(&supervisor, "exit", "").await, Outcome::HostFault);
    until("the end of both calls", || supervisor.log().matches("call finished").count() == 2).await;
    let log = supervisor.stop().await.log;
    let lines = objects(&log);
    let of_calls: Vec<&Value> = lines.iter().filter(|line| line.get("call_id").is_some()).collect();
    assert!(of_calls.len() >= 4, "{log}");
    for line in &of_calls {
        assert!(line["call_id"].as_str().unwrap().starts_with("c1."), "{line}");
        assert_eq!(
            (line["plugin"].as_str(), line["session"].as_str()),
            (Some("misbehave"), Some("s1")),
            "{line}"
        );
    }
    let ends: Vec<&&Value> = of_calls.iter().filter(|line| line["message"] == "call finished").collect();
    let [first, second] = ends[..] else { panic!("{ends:?}") };
    assert_eq!((first["instance"].as_u64(), first["outcome"].as_str()), (Some(0), Some("ok")), "{first}");
    assert_eq!(first["action"], "echo");
    assert_eq!((second["outcome"].as_str(), second["reason"].as_str()), (Some("host_fault"), Some("died")));
    for line in &lines {
        for name in ["timestamp", "level", "target", "message"] {
            assert!(line[name].is_string(), "{name} in {line}");
        }
    }
}

// Promises: TRACE-1
#[tokio::test]
async fn each_line_of_a_call_says_which_it_is_in_text() {
    let supervisor = Builder::new()
        .misbehave(&[], "")
        .config("log: { format: text }")
        .env("TALON_LOG", "debug")
        .start()
        .await;
    assert_eq!(call(&supervisor, "echo", "hi").await, Outcome::Ok);
    until("the end of the call", || supervisor.log().contains("call finished")).await;
    let log = supervisor.log();
    let end = log.lines().find(|line| line.contains("call finished")).unwrap();
    for part in ["call_id=\"c1.", "plugin=\"misbehave\"", "session=\"s1\"", "instance=0", "outcome=\"ok\""] {
        assert!(end.contains(part), "{part} in {end}");
    }
}

// Promises: TRACE-1, TRACE-3
#[tokio::test]
async fn the_journal_has_fields_as_fields_and_nothing_that_acts() {
    let (builder, socket) = to_the_journal("debug");
    let journal = Journal::at(&socket);
    let started = tokio::spawn(builder.start());
    let ready = journal.entry(|entry| entry["MESSAGE"] == "ready").await;
    assert_eq!((ready["PRIORITY"].as_str(), ready["SYSLOG_IDENTIFIER"].as_str()), ("6", "talon"));
    let supervisor = started.await.unwrap();

    assert_eq!(call(&supervisor, "log", "\u{1b}[2J<|im_start|> TALON_PLUGIN=other").await, Outcome::Ok);
    let said = journal.entry(|entry| entry["TALON_TARGET"] == "plugin").await;
    assert_eq!(
        (said["TALON_PLUGIN"].as_str(), said["TALON_INSTANCE"].as_str()),
        ("misbehave", "0"),
        "{said:?}"
    );
    assert!(said["MESSAGE"].contains("␛[2J<·|im_start|> TALON_PLUGIN=other"), "{said:?}");
    assert!(
        !said.contains_key("TALON_CALL_ID"),
        "a plugin's line names no call that nobody checked: {said:?}"
    );

    assert_eq!(call(&supervisor, "exit", "").await, Outcome::HostFault);
    let failed = |entry: &talon_tests::journal::Entry| {
        entry["MESSAGE"] == "call finished" && entry["TALON_OUTCOME"] == "host_fault"
    };
    let end = journal.entry(failed).await;
    for (name, value) in [
        ("TALON_PLUGIN", "misbehave"),
        ("TALON_ACTION", "exit"),
        ("TALON_SESSION", "s1"),
        ("TALON_INSTANCE", "0"),
        ("TALON_REASON", "died"),
        ("PRIORITY", "7"),
    ] {
        assert_eq!(end[name], value, "{name}: {end:?}");
    }
    assert!(end["TALON_CALL_ID"].starts_with("c1."), "{end:?}");
    assert_eq!(supervisor.log(), "", "nothing is said twice");
}

// Promises: TRACE-6
#[tokio::test]
async fn a_journal_that_is_gone_leaves_json_on_stderr_until_it_is_back() {
    let (builder, socket) = to_the_journal("debug");
    let supervisor = builder.start().await;
    assert_eq!(call(&supervisor, "echo", "hi").await, Outcome::Ok);
    until("the end of the call", || supervisor.log().contains("call finished")).await;
    let lines = objects(&supervisor.log());
    let said = |line: &Value| line["message"].as_str().unwrap().contains("the journal cannot be reached");
    assert!(said(&lines[0]), "{}", lines[0]);
    assert_eq!(lines.iter().filter(|line| said(line)).count(), 1, "it is said once");
    let end = lines.iter().find(|line| line["message"] == "call finished").unwrap();
    assert_eq!(end["plugin"], "misbehave");

    let journal = Journal::at(&socket);
    let before = supervisor.log();
    assert_eq!(call(&supervisor, "echo", "hi").await, Outcome::Ok);
    journal.entry(|entry| entry["MESSAGE"].contains("the journal takes lines again")).await;
    journal.entry(|entry| entry["MESSAGE"] == "call finished").await;
    assert_eq!(supervisor.log(), before);
}

// Promises: TRACE-5
#[tokio::test]
async fn a_full_journal_costs_lines_which_are_counted_and_no_call() {
    let (builder, socket) = to_the_journal("info,h2=trace");
    // Bound, and never read until the end.
    let journal = Journal::at(&socket);
    let supervisor = builder.start().await;
    calls_until_a_line_is_dropped(&supervisor).await;
    // Read again, the journal says how many are missing.
    let missing = journal.entry(|entry| entry["MESSAGE"].contains("log lines were dropped")).await;
    assert_eq!(missing["PRIORITY"], "4");
    drop(journal);
    assert!(supervisor.stop().await.status.success());
}

/// The same on stderr: a pipe whose reader has gone, and one that is never read.
// Promises: TRACE-17
#[tokio::test]
async fn a_stderr_that_is_closed_or_never_read_costs_lines_and_no_call() {
    let builder = Builder::new().env("TALON_LOG", "info,h2=trace").misbehave(&[], "");
    let supervisor =
        builder.wrapped(&["/bin/bash", "-c", "exec \"$@\" 2> >(exec true)", "bash"]).start().await;
    for _ in 0..50 {
        assert_eq!(call(&supervisor, "echo", "hi").await, Outcome::Ok);
    }
    assert!(supervisor.stop().await.status.success());

    let builder = Builder::new().env("TALON_LOG", "info,h2=trace").misbehave(&[], "");
    let fifo = builder.scratch().join("stderr");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let unread = format!("exec \"$@\" 2<> {}", fifo.display());
    let supervisor = builder.wrapped(&["/bin/sh", "-c", &unread, "sh"]).start().await;
    calls_until_a_line_is_dropped(&supervisor).await;
    assert!(supervisor.stop().await.status.success());
}

// Promises: TRACE-4
#[tokio::test]
async fn the_format_is_the_journals_where_stderr_is_connected_to_it() {
    let (auto, socket) = (Builder::new(), "journal.sock");
    let socket = auto.scratch().join(socket);
    let journal = Journal::at(&socket);
    let stream = "JOURNAL_STREAM=$(stat -Lc %d:%i /dev/fd/2) exec \"$@\"";
    let builder = auto
        .env("TALON_JOURNAL_SOCKET", socket.to_str().unwrap())
        .wrapped(&["/bin/sh", "-c", stream, "sh"])
        .misbehave(&[], "");
    let started = tokio::spawn(builder.start());
    journal.entry(|entry| entry["MESSAGE"] == "ready").await;
    assert_eq!(started.await.unwrap().log(), "");

    // What the variable names is not this stderr any more.
    let builder = Builder::new().env("JOURNAL_STREAM", "8:1").misbehave(&[], "");
    let supervisor = builder.start().await;
    until("a line in JSON", || objects(&supervisor.log()).iter().any(|line| line["message"] == "ready"))
        .await;
}
