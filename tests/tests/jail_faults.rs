//! What a hostile plugin does with what it has to be given: its pipes, its handshake, its socket. One test an
//! attack; each ends with a supervisor that serves the neighbour, and with nothing left of the attacker. What
//! it does to the machine is `jail_suite.rs`; faults without malice are `start_faults.rs` and
//! `call_faults.rs`.

use talon_proto::host::{ExecuteRequest, Outcome};
use talon_tests::{Builder, Supervisor, args, program};

/// A plugin that never gets ready is given up soon.
const SHORT_START: &str = "start_timeout: 3s\nmax_restarts: 0";

/// What the supervisor may need more at its peak, in KiB. A message has 8 MiB at most; frames, windows and
/// the allocator take some more.
const GROWTH_KIB: u64 = 48 << 10;

fn neighbour() -> Builder {
    Builder::new().plugin("hello", &program("hello"), &[], "")
}

async fn greets(supervisor: &Supervisor) {
    let answer = supervisor.client.call("hello", "greet", &[("name", "neighbour")]).await;
    assert!(answer.content.contains("neighbour"), "{answer:?}");
}

/// It is given up with a reason that holds the words; the neighbour serves, and nothing stays.
async fn fails_saying(supervisor: Supervisor, words: &[&str]) {
    let ended = |p: &talon_proto::host::Plugin| matches!(p.state.as_str(), "failed" | "refused");
    let plugin = supervisor.client.wait_for("misbehave", "failed or refused", ended).await;
    for word in words {
        assert!(plugin.reason.contains(word), "{word:?} is not in the reason: {}", plugin.reason);
    }
    assert!(plugin.reason.len() < 4096, "a reason of {} bytes is not bounded", plugin.reason.len());
    greets(&supervisor).await;
    ends_clean(supervisor).await;
}

async fn ends_clean(supervisor: Supervisor) {
    let stopped = supervisor.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    assert_eq!(stopped.processes, Vec::<u32>::new());
    assert_eq!(stopped.sockets, Vec::<std::path::PathBuf>::new());
    assert!(stopped.log.lines().count() < 500, "{} lines", stopped.log.lines().count());
}

fn peak_memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells the peak");
    line.trim().trim_end_matches(" kB").trim().parse().expect("a number")
}

macro_rules! floods {
    ($($name:ident: $flood:literal;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let supervisor = neighbour().start().await;
                let before = peak_memory_kib(supervisor.pid());
                drop(supervisor);
                let supervisor =
                    neighbour().misbehave(&["--flood", $flood], SHORT_START).without_waiting().start().await;
                greets(&supervisor).await;
                let ended = |p: &talon_proto::host::Plugin| p.state == "failed";
                supervisor.client.wait_for("misbehave", "failed", ended).await;
                let grown = peak_memory_kib(supervisor.pid()).saturating_sub(before);
                assert!(grown < GROWTH_KIB, "the supervisor's peak grew by {grown} KiB");
                fails_saying(supervisor, &[]).await;
            }
        )*
    };
}

floods! {
    floods_with_settings: "settings";
    floods_with_pings: "ping";
    floods_with_resets: "reset";
    floods_with_endless_headers: "continuation";
    floods_with_window_updates: "window";
    floods_with_empty_data: "empty-data";
    floods_with_frames_that_do_not_exist: "unknown";
}

/// Floods in the middle of its service: the connection is closed, it is charged with a death and given up;
/// the neighbour's calls are all answered.
macro_rules! floods_while_it_serves {
    ($($name:ident: $flood:literal;)*) => {
        $(
            // Promises: WIRE-15, LIFE-31
            #[tokio::test]
            async fn $name() {
                let supervisor =
                    neighbour().misbehave(&["--flood", $flood, "--flood-on-call"], "max_restarts: 0").start().await;
                let neighbours = async {
                    for _ in 0..200 {
                        greets(&supervisor).await;
                    }
                };
                let (answer, ()) =
                    tokio::join!(supervisor.client.call("misbehave", "echo", &[("text", "hi")]), neighbours);
                assert_eq!(answer.outcome(), Outcome::HostFault, "{answer:?}");
                let ended = |p: &talon_proto::host::Plugin| p.state == "failed";
                let plugin = supervisor.client.wait_for("misbehave", "failed", ended).await;
                assert!(plugin.reason.contains("flooded its connection"), "{}", plugin.reason);
                assert_eq!(plugin.restarts.get("frame_flood"), Some(&1), "{:?}", plugin.restarts);
                greets(&supervisor).await;
                ends_clean(supervisor).await;
            }
        )*
    };
}

floods_while_it_serves! {
    floods_a_served_call_with_settings: "settings";
    floods_a_served_call_with_pings: "ping";
    floods_a_served_call_with_window_updates: "window";
    floods_a_served_call_with_priorities: "priority";
    floods_a_served_call_with_early_hints: "early-hints";
    floods_a_served_call_with_unknown_frames: "unknown";
    floods_a_served_call_with_tiny_data: "tiny-data";
    floods_a_served_call_with_empty_data: "empty-data";
}

// Promises: WIRE-15, LIFE-31
#[tokio::test]
async fn floods_the_stream_of_its_output_with_early_hints() {
    let flood = ["--flood", "early-hints", "--flood-on-stdio"];
    let supervisor = neighbour().misbehave(&flood, "max_restarts: 0").without_waiting().start().await;
    fails_saying(supervisor, &["flooded its connection", "control frames without end"]).await;
}

#[tokio::test]
async fn names_the_supervisors_own_socket() {
    let builder = neighbour();
    let socket = builder.scratch().join("run/host.sock").display().to_string();
    let supervisor =
        builder.misbehave(&["--lie", "foreign-socket", "--path", &socket], SHORT_START).start().await;
    fails_saying(supervisor, &["socket"]).await;
}

#[tokio::test]
async fn names_a_link_to_the_supervisors_own_socket() {
    let builder = neighbour();
    let socket = builder.scratch().join("run/host.sock").display().to_string();
    let supervisor =
        builder.misbehave(&["--lie", "linked-socket", "--path", &socket], SHORT_START).start().await;
    fails_saying(supervisor, &["socket"]).await;
}

#[tokio::test]
async fn names_an_abstract_socket() {
    let supervisor = neighbour().misbehave(&["--lie", "abstract-address"], SHORT_START).start().await;
    fails_saying(supervisor, &["socket"]).await;
}

#[tokio::test]
async fn shakes_hands_when_nobody_waits_any_more() {
    let supervisor = neighbour().misbehave(&["--lie", "late"], SHORT_START).start().await;
    fails_saying(supervisor, &["handshake", "3 s"]).await;
}

#[tokio::test]
async fn shakes_hands_twice_and_the_second_line_is_a_line_of_the_log() {
    let supervisor = neighbour()
        .misbehave(&["--lie", "twice", "--path", "/run/elsewhere.sock"], SHORT_START)
        .start()
        .await;
    let answer = supervisor.client.call("misbehave", "echo", &[("text", "hi")]).await;
    assert_eq!(answer.content, "hi", "{answer:?}");
    supervisor.client.wait_log("misbehave", "elsewhere.sock").await;
    greets(&supervisor).await;
    ends_clean(supervisor).await;
}

#[tokio::test]
async fn a_length_in_the_wrong_order_is_refused() {
    let supervisor = neighbour().misbehave(&[], "").start().await;
    let answer = supervisor.client.call("misbehave", "wrong_endian", &[("text", "hi")]).await;
    assert_eq!((answer.outcome(), answer.reason.as_str()), (Outcome::Refused, "too_large"), "{answer:?}");
    greets(&supervisor).await;
    ends_clean(supervisor).await;
}

#[tokio::test]
async fn a_message_of_a_gigabyte_is_refused_and_never_held() {
    let supervisor = neighbour().misbehave(&[], "").start().await;
    greets(&supervisor).await;
    let before = peak_memory_kib(supervisor.pid());
    let answer = supervisor.client.call("misbehave", "big", &[("bytes", "1073741824")]).await;
    assert_eq!((answer.outcome(), answer.reason.as_str()), (Outcome::Refused, "too_large"), "{answer:?}");
    let grown = peak_memory_kib(supervisor.pid()) - before;
    assert!(grown < GROWTH_KIB, "the supervisor's peak grew by {grown} KiB");
    greets(&supervisor).await;
    ends_clean(supervisor).await;
}

#[tokio::test]
async fn a_gigabyte_of_output_holds_up_nobody_and_is_never_held() {
    let supervisor = neighbour().misbehave(&[], "").start().await;
    greets(&supervisor).await;
    let before = peak_memory_kib(supervisor.pid());
    let client = supervisor.client.clone();
    // What it prints in a flood is read so slowly that the flood comes to a stop: it would take minutes to
    // print it all.
    for stream in ["stdout", "stderr"] {
        let flood = client.execute(ExecuteRequest {
            plugin: "misbehave".into(),
            action: "print".into(),
            args: args(&[("bytes", "1073741824"), ("stream", stream)]),
            timeout_ms: 2000,
            ..ExecuteRequest::default()
        });
        let greetings = async {
            for _ in 0..20 {
                greets(&supervisor).await;
            }
        };
        let (printed, ()) = tokio::join!(flood, greetings);
        let printed = printed.expect("a timeout is an answer");
        assert_eq!(printed.outcome(), Outcome::HostFault, "{printed:?}");
        greets(&supervisor).await;
        client.stop("misbehave").await.expect("it is stopped all the same");
        client.start("misbehave").await.expect("it is started again");
        client.wait_state("misbehave", "ready").await;
    }
    let grown = peak_memory_kib(supervisor.pid()) - before;
    assert!(grown < GROWTH_KIB, "the supervisor's peak grew by {grown} KiB");
    let stopped = supervisor.stop().await;
    assert_eq!(stopped.processes, Vec::<u32>::new());
    // So many lines a second are logged, and no more: ten million were on their way.
    assert!(stopped.log.lines().count() < 100_000, "{} lines", stopped.log.lines().count());
}

#[tokio::test]
async fn a_huge_environment_that_is_told_back_is_cut() {
    let huge = "e".repeat(100 << 10);
    let supervisor = neighbour().misbehave(&[], &format!("env: {{ HUGE: {huge} }}")).start().await;
    let answer = supervisor.client.call("misbehave", "env", &[]).await;
    assert_eq!(answer.outcome(), Outcome::Ok, "{answer:?}");
    assert!(answer.content.len() < 100 << 10, "{} bytes", answer.content.len());
    let long = "a".repeat(200 << 10);
    let answer = supervisor.client.call("misbehave", "echo", &[("text", &long)]).await;
    assert!(answer.content.len() < 100 << 10, "{} bytes", answer.content.len());
    greets(&supervisor).await;
    ends_clean(supervisor).await;
}
