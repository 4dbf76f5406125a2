//! A timeout is a fence: an answer that comes too late, or to another call, reaches no caller, whatever its
//! id; and a plugin that ignores its deadlines is killed, if the operator configures that.

use talon_proto::host::{ExecuteRequest, ExecuteResponse, Outcome};
use talon_tests::{Builder, Client, Supervisor, args, peak_memory_kib};
use tokio_stream::StreamExt;

const QUICK: &str = "backoff_initial: 10ms\nbackoff_max: 50ms\nmax_restarts: 100";

/// A supervisor with the misbehaving plugin, whose late actions may take a moment only.
async fn liar(more: &str) -> Supervisor {
    let short = "actions: { mailbox: { timeout: 400ms }, hang: { timeout: 400ms }, heed: { timeout: 400ms }, block: { timeout: 400ms }, pour: { timeout: 400ms } }";
    let all = format!("{QUICK}\n{short}\n{more}");
    // What a breaker thinks of so many faults is no matter here.
    Builder::new().misbehave(&[], &all).config("guard: { breaker: { failures: 1000 } }").start().await
}

fn request(id: &str, action: &str, pairs: &[(&str, &str)]) -> ExecuteRequest {
    ExecuteRequest {
        plugin: "misbehave".into(),
        action: action.into(),
        args: args(pairs),
        call_id: id.into(),
        ..ExecuteRequest::default()
    }
}

async fn call(client: &Client, id: &str, action: &str, pairs: &[(&str, &str)]) -> ExecuteResponse {
    client.execute(request(id, action, pairs)).await.expect("it is answered")
}

fn is(answer: &ExecuteResponse, outcome: Outcome, reason: &str) {
    assert_eq!((answer.outcome(), answer.reason.as_str()), (outcome, reason), "{answer:?}");
}

fn refused_whole(answer: &ExecuteResponse) {
    is(answer, Outcome::Refused, "bad_result");
    assert!(!answer.block.contains("the work of"), "{}", answer.block);
}

/// The plugin's process is still the first.
async fn lives_on(supervisor: &Supervisor) {
    let answer = supervisor.client.call("misbehave", "echo", &[("text", "still here")]).await;
    assert_eq!(answer.content, "still here", "{answer:?}");
    let plugin = supervisor.client.plugin("misbehave").await;
    assert_eq!((plugin.instances[0].generation, plugin.deaths), (1, 0), "{plugin:?}");
}

// Promises: GUARD-61
#[tokio::test]
async fn is_late_and_answers_the_next_call_with_the_same_id() {
    let supervisor = liar("").await;
    let first = call(&supervisor.client, "c1", "mailbox", &[]).await;
    is(&first, Outcome::HostFault, "timed_out");
    let second = call(&supervisor.client, "c1", "mailbox", &[]).await;
    assert_eq!(
        (second.outcome(), second.content.as_str()),
        (Outcome::Ok, "the work of call 2"),
        "{second:?}"
    );
    assert_eq!(second.call_id, "c1", "the caller has its own id back");
}

// Promises: GUARD-61
#[tokio::test]
async fn answers_a_call_with_what_belongs_to_another_in_flight_with_the_same_id() {
    let supervisor = liar("").await;
    let client = supervisor.client.clone();
    let first = tokio::spawn(async move { call(&client, "c1", "mailbox", &[]).await });
    supervisor.client.wait_log("misbehave", "the work takes long").await;
    let second = call(&supervisor.client, "c1", "mailbox", &[]).await;
    assert_eq!(
        (second.outcome(), second.content.as_str()),
        (Outcome::Ok, "the work of call 2"),
        "{second:?}"
    );
    is(&first.await.expect("the task ends"), Outcome::HostFault, "timed_out");
}

// Promises: GUARD-62
#[tokio::test]
async fn swaps_the_answers_of_two_calls() {
    let supervisor = liar("").await;
    // Different ids, and the same twice, which is no different to the guard.
    for ids in [["c1", "c2"], ["c3", "c3"]] {
        let client = supervisor.client.clone();
        let first = tokio::spawn(async move { call(&client, ids[0], "swap", &[]).await });
        supervisor.client.wait_in_flight("misbehave").await;
        let second = call(&supervisor.client, ids[1], "swap", &[]).await;
        refused_whole(&second);
        refused_whole(&first.await.expect("the task ends"));
    }
    lives_on(&supervisor).await;
}

// Promises: GUARD-63
#[tokio::test]
async fn answers_with_an_id_of_an_earlier_generation() {
    let supervisor = liar("").await;
    let client = &supervisor.client;
    let seen = call(client, "c1", "my_id", &[]).await.content;
    assert!(seen.starts_with("c1."), "the plugin's log leads to the caller's: {seen}");
    is(&call(client, "c1", "exit", &[]).await, Outcome::HostFault, "died");
    client
        .wait_for("misbehave", "ready again", |p| p.state == "ready" && p.instances[0].generation == 2)
        .await;
    let pairs = [("id", seen.as_str()), ("text", "the work of generation 1")];
    refused_whole(&call(client, "c1", "answer_as", &pairs).await);
    // What the caller calls it is not what the plugin was asked with.
    refused_whole(&call(client, "c1", "answer_as", &[("id", "c1"), ("text", "the work of nobody")]).await);
    let again = call(client, "c1", "my_id", &[]).await.content;
    assert_ne!(seen, again);
}

// Promises: GUARD-65
#[tokio::test]
async fn ignores_its_deadline_and_is_killed_for_it() {
    let supervisor = liar("kill_overdue_after: 300ms").await;
    let mut events = supervisor.client.events("misbehave").await;
    let client = supervisor.client.clone();
    let other = tokio::spawn(async move { client.call("misbehave", "drip", &[]).await });
    supervisor.client.wait_in_flight("misbehave").await;
    let late = call(&supervisor.client, "c1", "hang", &[]).await;
    is(&late, Outcome::HostFault, "timed_out");
    let other = other.await.expect("the task ends");
    is(&other, Outcome::HostFault, "died");
    assert!(!other.retryable && !other.error.contains("c1"), "{other:?}");
    let reason = loop {
        let event = events.next().await.expect("the supervisor goes on").expect("the stream is whole");
        if event.kind == "state_changed" && event.message.contains("ignored the deadline") {
            break event.message;
        }
    };
    assert!(reason.contains("ignored the deadline of call c1."), "{reason}");
    assert!(reason.contains("(action hang) for 300 ms"), "{reason}");
    let ready =
        |p: &talon_proto::host::Plugin| p.state == "ready" && p.instances[0].generation == 2 && p.deaths == 1;
    supervisor.client.wait_for("misbehave", "ready again", ready).await;
    let echo = supervisor.client.call("misbehave", "echo", &[("text", "new")]).await;
    assert_eq!(echo.content, "new");
    supervisor.client.wait_log("misbehave", "it ignored the deadline of call c1.").await;
    supervisor.wait_log("ignored the deadline of call c1.").await;
}

// Promises: GUARD-65
#[tokio::test]
async fn blocks_all_its_threads_and_is_killed_for_the_deadline_it_ignores() {
    let supervisor = liar("kill_overdue_after: 300ms").await;
    is(&call(&supervisor.client, "c1", "block", &[]).await, Outcome::HostFault, "timed_out");
    let ready = |p: &talon_proto::host::Plugin| p.state == "ready" && p.instances[0].generation == 2;
    supervisor.client.wait_for("misbehave", "ready again", ready).await;
}

// Promises: GUARD-65
#[tokio::test]
async fn drips_past_its_deadline_and_is_killed_for_it() {
    let supervisor = liar("kill_overdue_after: 300ms\ntimeout: 400ms").await;
    is(&call(&supervisor.client, "c1", "drip", &[]).await, Outcome::HostFault, "timed_out");
    let ready = |p: &talon_proto::host::Plugin| p.state == "ready" && p.instances[0].generation == 2;
    supervisor.client.wait_for("misbehave", "ready again", ready).await;
}

// Promises: GUARD-66
#[tokio::test]
async fn heeds_its_deadline_and_lives_on() {
    let supervisor = liar("kill_overdue_after: 3s").await;
    is(&call(&supervisor.client, "c1", "heed", &[]).await, Outcome::HostFault, "timed_out");
    supervisor.client.wait_log("misbehave", "the deadline is heeded").await;
    // A call that lasts longer than it would have taken to be killed.
    let slow = supervisor.client.call("misbehave", "slow", &[("ms", "4000")]).await;
    is(&slow, Outcome::Ok, "");
    lives_on(&supervisor).await;
}

// Promises: GUARD-68
#[tokio::test]
async fn pours_out_a_hundred_mebibytes_when_nobody_waits_any_more() {
    let supervisor = liar("kill_overdue_after: 60s").await;
    let before = peak_memory_kib(supervisor.pid());
    is(&call(&supervisor.client, "c1", "pour", &[]).await, Outcome::HostFault, "timed_out");
    supervisor.client.wait_log("misbehave", "all is poured").await;
    lives_on(&supervisor).await;
    let grown = peak_memory_kib(supervisor.pid()) - before;
    // Frames, windows and the allocator take some, but nothing is kept.
    assert!(grown < 48 << 10, "the supervisor's peak grew by {grown} KiB");
}

// Promises: GUARD-67
#[tokio::test]
async fn is_not_killed_for_callers_in_a_hurry_nor_for_those_that_leave() {
    let supervisor = liar("kill_overdue_after: 100ms").await;
    let hurried = ExecuteRequest { timeout_ms: 50, ..request("c1", "hang", &[]) };
    let answer = supervisor.client.execute(hurried).await.expect("a timeout is an answer");
    is(&answer, Outcome::HostFault, "timed_out");
    supervisor.client.wait_log("misbehave", "the call was cancelled").await;
    let leaving = Client::connect(&supervisor.socket()).await.expect("it answers");
    let call = tokio::spawn(async move { leaving.try_call("misbehave", "drip", &[]).await });
    supervisor.client.wait_in_flight("misbehave").await;
    call.abort();
    let slow = supervisor.client.call("misbehave", "slow", &[("ms", "1000")]).await;
    is(&slow, Outcome::Ok, "");
    lives_on(&supervisor).await;
}

// Promises: GUARD-66
#[tokio::test]
async fn ignores_its_deadline_and_is_only_told_so_without_the_policy() {
    let supervisor = liar("").await;
    is(&call(&supervisor.client, "c1", "hang", &[]).await, Outcome::HostFault, "timed_out");
    supervisor.client.wait_log("misbehave", "the call was cancelled").await;
    lives_on(&supervisor).await;
}
