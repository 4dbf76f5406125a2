//! Events for an operator: numbered, kept over kills, and given out after any number.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use talon_proto::host::{AckEventsRequest, HostEvent, SubscribeRequest};
use talon_tests::{Builder, Leftovers, Supervisor, program};
use tokio::time::timeout;
use tonic::{Code, Streaming};

/// A bound on hanging, not an expectation of speed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A plugin that ends as soon as it starts makes an event with each of its starts.
fn crashing(builder: Builder) -> Builder {
    builder.config("events:\n  window: 0s").plugin(
        "crashes",
        &program("misbehave"),
        &["--lie", "exit-at-once"],
        "backoff_initial: 10ms\nbackoff_max: 10ms\nmax_restarts: 1000",
    )
}

async fn subscribe(supervisor: &Supervisor, after: u64) -> Streaming<HostEvent> {
    let request = SubscribeRequest { after, kept_only: false, ..SubscribeRequest::default() };
    supervisor.client.clone().raw().subscribe(request).await.expect("it is allowed").into_inner()
}

async fn next(events: &mut Streaming<HostEvent>) -> HostEvent {
    let event = timeout(PATIENCE, events.message()).await.expect("an event comes");
    event.expect("the stream is whole").expect("the stream goes on")
}

async fn next_of(events: &mut Streaming<HostEvent>, kind: &str) -> HostEvent {
    loop {
        let event = next(events).await;
        if event.kind == kind {
            return event;
        }
    }
}

async fn kept(supervisor: &Supervisor, after: u64) -> Vec<HostEvent> {
    let request = SubscribeRequest { after, kept_only: true, ..SubscribeRequest::default() };
    let mut events =
        supervisor.client.clone().raw().subscribe(request).await.expect("it is allowed").into_inner();
    let mut found = Vec::new();
    while let Some(event) = timeout(PATIENCE, events.message()).await.expect("it ends").expect("it is whole")
    {
        found.push(event);
    }
    found
}

fn newest_segment(left: &Leftovers) -> PathBuf {
    let entries = std::fs::read_dir(left.scratch().join("data/events")).expect("there is a log");
    let paths: BTreeSet<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.into_iter().next_back().expect("it has a segment")
}

fn append(path: &Path, bytes: &[u8]) {
    let file = std::fs::OpenOptions::new().append(true).open(path);
    file.and_then(|mut file| file.write_all(bytes)).expect("it can be written");
}

// Promises: EXT-65, EXT-66
#[tokio::test]
async fn ten_kills_leave_no_hole_and_no_number_twice() {
    let mut builder = crashing(Builder::new());
    let mut seen: Vec<HostEvent> = Vec::new();
    for round in 0..10 {
        let supervisor = builder.without_waiting().start().await;
        let after = seen.last().map_or(0, |event| event.number);
        let mut events = subscribe(&supervisor, after).await;
        for _ in 0..5 {
            seen.push(next(&mut events).await);
        }
        let stopped = supervisor.end(Signal::SIGKILL).await;
        if round == 4 {
            // The beginning of a write that did not end.
            append(&newest_segment(&stopped.left), b"\x1eev\x02\x40");
        }
        builder = crashing(Builder::on_leftovers(stopped.left));
    }
    let supervisor = builder.without_waiting().start().await;
    let numbers: Vec<u64> = seen.iter().map(|event| event.number).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    let kept = kept(&supervisor, 0).await;
    assert_eq!(kept[..seen.len()], seen, "what was given out is still there");
    assert!(seen.iter().all(|event| event.fields["plugin"] == "crashes"), "{seen:?}");
}

// Promises: EXT-66
#[tokio::test]
async fn a_torn_write_is_cut_and_said() {
    let supervisor = crashing(Builder::new()).without_waiting().start().await;
    let first = next(&mut subscribe(&supervisor, 0).await).await;
    let stopped = supervisor.end(Signal::SIGKILL).await;
    append(&newest_segment(&stopped.left), b"\x1eev\x02\x40\0\0\0half of a record");
    let supervisor = crashing(Builder::on_leftovers(stopped.left)).without_waiting().start().await;
    supervisor.wait_log("were no whole record and were cut off").await;
    let mut events = subscribe(&supervisor, first.number).await;
    assert_eq!(next(&mut events).await.number, first.number + 1);
}

// Promises: EXT-68
#[tokio::test]
async fn what_goes_wrong_and_right_again_is_told() {
    let quick = "backoff_initial: 10ms\nbackoff_max: 10ms\nmax_restarts: 2";
    let supervisor = Builder::new()
        .config("events:\n  window: 0s")
        .plugin("hello", &program("hello"), &[], quick)
        .start()
        .await;
    let mut events = subscribe(&supervisor, 0).await;

    let pid = supervisor.client.plugin("hello").await.instances[0].pid;
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).expect("it runs");
    let failed = next(&mut events).await;
    assert_eq!((failed.kind.as_str(), failed.severity.as_str()), ("plugin.failed", "warning"));
    assert!(failed.summary.contains("hello") && failed.fields["count"] == "1", "{failed:?}");
    let ready = next(&mut events).await;
    assert_eq!((ready.kind.as_str(), ready.number), ("plugin.ready", failed.number + 1));

    let good = std::fs::read_to_string(supervisor.config()).expect("it is there");
    std::fs::write(supervisor.config(), format!("{good}\nnonsense: 1\n")).expect("it can be written");
    assert!(!supervisor.client.reload(false).await.accepted);
    let refused = next_of(&mut events, "config.refused").await;
    assert!(refused.details.contains("nonsense"), "{refused:?}");
    std::fs::write(supervisor.config(), good).expect("it can be written");

    let state = supervisor.client.status().await.state_service.expect("state is on").pid;
    kill(Pid::from_raw(state.cast_signed()), Signal::SIGKILL).expect("it runs");
    assert_eq!(next_of(&mut events, "state.unavailable").await.severity, "critical");
    let available = next_of(&mut events, "state.available").await;

    // The command line shows the same, after any number.
    let listed = supervisor.cli(&["event", "list", "--output", "json"]).await;
    let listed = String::from_utf8(listed.stdout).expect("it is text");
    let kinds: Vec<String> = listed
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("JSON")["kind"].as_str().expect("a kind").to_owned()
        })
        .collect();
    for kind in ["plugin.failed", "plugin.ready", "config.refused", "state.unavailable", "state.available"] {
        assert!(kinds.iter().any(|listed| listed == kind), "{kind} is missing in {kinds:?}");
    }
    let after = available.number.to_string();
    let ambiguous = supervisor.cli(&["event", "list", "--after", &after]).await;
    assert_eq!(ambiguous.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ambiguous.stderr).contains("add --source host"), "{ambiguous:?}");
    let none = supervisor.cli(&["event", "list", "--source", "host", "--after", &after]).await;
    assert_eq!(String::from_utf8_lossy(&none.stdout).trim(), "no events");
    let beyond = (available.number + 1000).to_string();
    let refused = supervisor.cli(&["event", "list", "--source", "host", "--after", &beyond]).await;
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("was never given out here"), "{refused:?}");

    // An orderly end is no trouble, and the next supervisor goes on.
    let stopped = supervisor.stop().await;
    let supervisor = Builder::on_leftovers(stopped.left).start().await;
    assert_eq!(kept(&supervisor, available.number).await, []);
}

// Promises: EXT-69
#[tokio::test]
async fn a_plugin_that_crashes_all_the_time_is_a_few_events() {
    let builder = Builder::new().config("events:\n  window: 1h");
    let supervisor = builder
        .plugin(
            "crashes",
            &program("misbehave"),
            &["--lie", "exit-at-once"],
            "backoff_initial: 10ms\nbackoff_max: 10ms\nmax_restarts: 6",
        )
        .start()
        .await;
    supervisor.client.wait_state("crashes", "failed").await;
    let stopped = supervisor.stop().await;
    let supervisor = Builder::on_leftovers(stopped.left).start().await;
    let events = kept(&supervisor, 0).await;
    let counted = |kind: &str| -> Vec<u64> {
        let of_kind = events.iter().filter(|event| event.kind == kind);
        of_kind.map(|event| event.fields["count"].parse().expect("a number")).collect()
    };
    // The first death and the end; six restarts, of which the first is told of at once.
    assert_eq!(
        (counted("plugin.failed"), counted("plugin.restarting")),
        (vec![1, 1], vec![1, 4]),
        "{events:?}"
    );
    assert_eq!(events.last().expect("there are some").severity, "critical");
}

// Promises: EXT-70
#[tokio::test]
async fn who_has_no_role_gets_no_events_and_people_acknowledge_none() {
    let supervisor = Builder::new().start().await;
    let ack = supervisor
        .client
        .clone()
        .raw()
        .ack_events(AckEventsRequest { through: 1, ..AckEventsRequest::default() })
        .await;
    assert_eq!(ack.expect_err("an operator is no service").code(), Code::PermissionDenied);

    let builder = Builder::new()
        .config(&format!("host:\n  peers:\n    - {{ uid: {}, role: call }}", nix::unistd::Uid::effective()));
    let supervisor = builder.start().await;
    let denied = supervisor.client.clone().raw().subscribe(SubscribeRequest::default()).await;
    let denied = denied.expect_err("the role call is too little");
    assert_eq!(denied.code(), Code::PermissionDenied);
    assert!(denied.message().contains("needs the role operate"), "{denied:?}");
    let ack = supervisor
        .client
        .clone()
        .raw()
        .ack_events(AckEventsRequest { through: 1, ..AckEventsRequest::default() })
        .await;
    assert_eq!(ack.expect_err("nor is a caller").code(), Code::PermissionDenied);
}

// Promises: EXT-65
#[tokio::test]
async fn numbers_go_on_when_another_supervisor_takes_over() {
    let supervisor = Builder::new()
        .config("events:\n  window: 0s")
        .plugin("hello", &program("hello"), &[], "")
        .start()
        .await;
    let crash = async |supervisor: &Supervisor, after: u64| {
        let mut events = subscribe(supervisor, after).await;
        let pid = supervisor.client.plugin("hello").await.instances[0].pid;
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).expect("it runs");
        next_of(&mut events, "plugin.ready").await.number
    };
    let before = crash(&supervisor, 0).await;
    let other = supervisor.start_sibling(&["--takeover"]);
    let (supervisor, _) = supervisor.succeeded_by(other).await;
    supervisor.client.wait_state("hello", "ready").await;
    assert_eq!(crash(&supervisor, before).await, before + 2);
}
