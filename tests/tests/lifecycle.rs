//! Plugins live, die and come back; and when their supervisor goes, nothing of them stays.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_proto::host::Outcome;
use talon_tests::{Builder, Scratch, Supervisor, alive, program};
use tokio_stream::StreamExt;

const QUICK: &str = "backoff_initial: 10ms\nbackoff_max: 50ms";

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).expect("it runs");
}

async fn pid(supervisor: &Supervisor, plugin: &str) -> u32 {
    supervisor.client.plugin(plugin).await.instances[0].pid
}

// Promises: LIFE-4
#[tokio::test]
async fn a_killed_plugin_comes_back() {
    let supervisor = Builder::new().misbehave(&[], QUICK).start().await;
    let old = pid(&supervisor, "misbehave").await;
    let mut events = supervisor.client.events("misbehave").await;
    signal(old, Signal::SIGKILL);
    let exited = loop {
        let event = events.next().await.expect("the events go on").expect("the stream is whole");
        if event.kind == "plugin_exited" {
            break event;
        }
    };
    assert!(exited.message.contains("SIGKILL"), "{exited:?}");
    let back = supervisor
        .client
        .wait_for("misbehave", "back", |p| p.state == "ready" && p.instances[0].pid != old)
        .await;
    assert_eq!(back.deaths, 1);
    assert_eq!(back.instances[0].generation, 2);
    let answer = supervisor.client.call("misbehave", "echo", &[("text", "hi")]).await;
    assert_eq!(answer.content, "hi");
}

// Promises: UPGRADE-15
#[tokio::test]
async fn a_plugin_whose_program_was_deleted_comes_back() {
    let builder = Builder::new();
    let path = builder.scratch().install(&program("misbehave"), "bin/misbehave");
    let supervisor = builder.plugin("misbehave", &path, &[], QUICK).start().await;
    std::fs::remove_file(&path).expect("it is there");
    for deaths in 1..=2 {
        let old = pid(&supervisor, "misbehave").await;
        signal(old, Signal::SIGKILL);
        let back = |p: &talon_proto::host::Plugin| p.state == "ready" && p.instances[0].pid != old;
        let plugin = supervisor.client.wait_for("misbehave", "back", back).await;
        assert_eq!(plugin.deaths, deaths);
        let answer = supervisor.client.call("misbehave", "echo", &[("text", "hi")]).await;
        assert_eq!(answer.content, "hi");
    }
    let gone = format!("because {} is gone: put it back", path.display());
    supervisor.client.wait_log("misbehave", &gone).await;
    let shown = supervisor.cli(&["plugin", "show", "misbehave"]).await;
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(text.contains("is gone: put it back"), "{text}");
}

// Promises: LIFE-18
#[tokio::test]
async fn calls_that_arrive_while_a_plugin_restarts_wait_for_it() {
    let supervisor = Builder::new()
        .misbehave(&[], "backoff_initial: 300ms\nbackoff_max: 300ms\nready_wait: 20s")
        .start()
        .await;
    // The first restart is at once; before the second there is a wait.
    let old = pid(&supervisor, "misbehave").await;
    signal(old, Signal::SIGKILL);
    let again = |p: &talon_proto::host::Plugin| p.state == "ready" && p.instances[0].pid != old;
    let plugin = supervisor.client.wait_for("misbehave", "ready again", again).await;
    signal(plugin.instances[0].pid, Signal::SIGKILL);
    supervisor.client.wait_for("misbehave", "no longer ready", |p| p.state != "ready").await;
    let answer = supervisor.client.call("misbehave", "echo", &[("text", "patient")]).await;
    assert_eq!(answer.content, "patient", "{answer:?}");
}

// Promises: LIFE-6, LIFE-7
#[tokio::test]
async fn too_many_deaths_make_it_fail_until_an_operator_starts_it() {
    let supervisor = Builder::new().misbehave(&[], &format!("{QUICK}\nmax_restarts: 2")).start().await;
    for death in 1..=3 {
        let plugin = supervisor.client.wait_state("misbehave", "ready").await;
        signal(plugin.instances[0].pid, Signal::SIGKILL);
        supervisor.client.wait_for("misbehave", "counted", |p| p.deaths >= death).await;
    }
    let failed = supervisor.client.wait_state("misbehave", "failed").await;
    assert!(failed.reason.contains("SIGKILL"), "{}", failed.reason);
    assert!(failed.reason.contains("talon plugin start misbehave"), "{}", failed.reason);
    let refused = supervisor.client.call("misbehave", "echo", &[("text", "x")]).await;
    assert_eq!((refused.outcome(), refused.reason.as_str()), (Outcome::HostFault, "unavailable"));
    let started = supervisor.client.start("misbehave").await.expect("an operator may");
    assert_eq!(started.state, "ready");
    let answer = supervisor.client.call("misbehave", "echo", &[("text", "again")]).await;
    assert_eq!(answer.content, "again");
}

// Promises: LIFE-9
#[tokio::test]
async fn restart_on_failure_off_means_what_it_says() {
    let supervisor = Builder::new().misbehave(&[], "restart_on_failure: false").start().await;
    signal(pid(&supervisor, "misbehave").await, Signal::SIGKILL);
    let failed = supervisor.client.wait_state("misbehave", "failed").await;
    assert!(failed.reason.contains("SIGKILL"), "{}", failed.reason);
}

// Promises: LIFE-13
#[tokio::test]
async fn an_unhealthy_plugin_is_replaced() {
    let supervisor = Builder::new()
        .misbehave(
            &["--lie", "unhealthy"],
            &format!(
                "{QUICK}\nhealth_check_interval: 100ms\nhealth_check_timeout: 100ms\nhealth_failure_threshold: 2\nmax_restarts: 1000"
            ),
        )
        .start()
        .await;
    let old = pid(&supervisor, "misbehave").await;
    let answer = supervisor.client.call("misbehave", "echo", &[("text", "last words")]).await;
    assert_eq!(answer.content, "last words");
    let new = supervisor
        .client
        .wait_for("misbehave", "replaced", |p| p.state == "ready" && p.instances[0].pid != old)
        .await;
    assert_ne!(new.instances[0].pid, old);
    assert!(!alive(old));
}

// Promises: LIFE-15
#[tokio::test]
async fn a_busy_single_threaded_plugin_is_not_unhealthy() {
    let supervisor = Builder::new()
        .misbehave(
            &["--single-threaded"],
            "health_check_interval: 50ms\nhealth_check_timeout: 50ms\nhealth_failure_threshold: 1",
        )
        .start()
        .await;
    let old = pid(&supervisor, "misbehave").await;
    let answer = supervisor.client.call("misbehave", "slow", &[("ms", "1500")]).await;
    assert_eq!(answer.outcome(), Outcome::Ok, "{answer:?}");
    assert_eq!(pid(&supervisor, "misbehave").await, old);
}

// Promises: LIFE-14
#[tokio::test]
async fn a_stopped_process_is_found_and_replaced() {
    let supervisor = Builder::new()
        .misbehave(
            &[],
            &format!("{QUICK}\nhealth_check_interval: 200ms\nhealth_check_timeout: 200ms\nhealth_failure_threshold: 2\ngrace_period: 300ms\nmax_restarts: 1000"),
        )
        .start()
        .await;
    let old = pid(&supervisor, "misbehave").await;
    signal(old, Signal::SIGSTOP);
    supervisor
        .client
        .wait_for("misbehave", "replaced", |p| p.state == "ready" && p.instances[0].pid != old)
        .await;
    assert!(!alive(old));
}

// Promises: LIFE-22
#[tokio::test]
async fn stop_means_stopped_and_start_means_started() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let old = pid(&supervisor, "misbehave").await;
    let stopped = supervisor.client.stop("misbehave").await.expect("an operator may");
    assert_eq!((stopped.state.as_str(), stopped.desired.as_str()), ("stopped", "down"));
    assert!(!alive(old));
    assert_eq!(supervisor.plugin_processes(), Vec::<u32>::new());
    let refused = supervisor.client.call("misbehave", "echo", &[("text", "x")]).await;
    assert_eq!(refused.reason, "unavailable", "{refused:?}");
    assert!(refused.error.contains("stopped"), "{}", refused.error);
    let started = supervisor.client.start("misbehave").await.expect("an operator may");
    assert_eq!((started.state.as_str(), started.deaths), ("ready", 0));
}

// Promises: WIRE-10
#[tokio::test]
async fn a_plugin_that_ends_inside_shutdown_has_understood() {
    // It exits before it answers, so the caller of Shutdown sees UNAVAILABLE, which means yes.
    let supervisor = Builder::new().misbehave(&[], "grace_period: 10m").start().await;
    let mut events = supervisor.client.events("misbehave").await;
    supervisor.client.stop("misbehave").await.expect("an operator may");
    let exited = loop {
        let event = events.next().await.expect("the events go on").expect("the stream is whole");
        if event.kind == "plugin_exited" {
            break event;
        }
    };
    assert!(exited.message.contains("exit code 0"), "no signal was needed: {exited:?}");
}

// Promises: HOST-13
#[tokio::test]
async fn what_an_operator_asked_for_outlives_his_client() {
    let supervisor = Builder::new().misbehave(&["--ignore-signals"], "grace_period: 600ms").start().await;
    let client = talon_tests::Client::connect(&supervisor.socket()).await.expect("it answers");
    let stop = tokio::spawn(async move { client.stop("misbehave").await });
    supervisor.client.wait_for("misbehave", "on its way down", |p| p.desired == "down").await;
    stop.abort();
    supervisor.client.wait_state("misbehave", "stopped").await;
}

// Promises: LIFE-20
#[tokio::test]
async fn a_plugin_that_ignores_every_signal_is_stopped_all_the_same() {
    let supervisor = Builder::new().misbehave(&["--ignore-signals"], "grace_period: 300ms").start().await;
    let old = pid(&supervisor, "misbehave").await;
    let stopped = supervisor.client.stop("misbehave").await.expect("an operator may");
    assert_eq!(stopped.state, "stopped");
    assert!(!alive(old));
}

// Promises: HAND-28, LAUNCH-19
#[tokio::test]
async fn what_a_plugin_started_dies_with_it() {
    let supervisor = Builder::new().misbehave(&["--lie", "grandchild"], QUICK).start().await;
    let daemon = supervisor.client.call("misbehave", "daemon", &[]).await;
    assert_eq!(daemon.content, "started", "{daemon:?}");
    let before = supervisor.plugin_processes();
    assert!(before.len() >= 3, "the plugin, its child and its daemon: {before:?}");
    let old = pid(&supervisor, "misbehave").await;
    signal(old, Signal::SIGKILL);
    // The pipes that its grandchild held do not keep the next one from starting.
    supervisor
        .client
        .wait_for("misbehave", "back", |p| p.state == "ready" && p.instances[0].pid != old)
        .await;
    for pid in before {
        assert!(!alive(pid), "{pid} lived on");
    }
    let stopped = supervisor.stop().await;
    assert_eq!(stopped.processes, Vec::<u32>::new());
}

// Promises: LIFE-24
#[tokio::test]
async fn several_instances_share_the_calls() {
    let supervisor = Builder::new().misbehave(&[], "instances: 3\nconcurrency: 30").start().await;
    let plugin = supervisor.client.plugin("misbehave").await;
    let mut pids: Vec<u32> = plugin.instances.iter().map(|i| i.pid).collect();
    pids.dedup();
    assert_eq!(pids.len(), 3);
    let calls: Vec<_> = (0..9)
        .map(|_| {
            let client = supervisor.client.clone();
            tokio::spawn(async move { client.try_call("misbehave", "hang", &[]).await })
        })
        .collect();
    supervisor
        .client
        .wait_until("three calls on each", async |client| {
            client.plugin("misbehave").await.instances.iter().all(|i| i.calls_in_flight == 3)
        })
        .await;
    calls.iter().for_each(tokio::task::JoinHandle::abort);
    // One of them dies: the others serve on. A call that was given to it in its last moment fails with it, so
    // its death is awaited first.
    let old = plugin.instances[0].pid;
    signal(old, Signal::SIGKILL);
    supervisor.client.wait_for("misbehave", "one death noticed", |p| p.instances[0].pid != old).await;
    for _ in 0..20 {
        let answer = supervisor.client.call("misbehave", "echo", &[("text", "hi")]).await;
        assert_eq!(answer.content, "hi", "{answer:?}");
    }
}

// Promises: LIFE-25, LIFE-28
#[tokio::test]
async fn a_supervisor_that_is_told_to_end_finishes_what_is_under_way() {
    let supervisor = Builder::new().misbehave(&[], "").start().await;
    let client = supervisor.client.clone();
    let call =
        tokio::spawn(
            async move { client.call("misbehave", "slow", &[("ms", "800"), ("text", "done")]).await },
        );
    supervisor.client.wait_in_flight("misbehave").await;
    let stopped = supervisor.end(Signal::SIGTERM).await;
    let answer = call.await.expect("the task ends");
    assert_eq!(answer.content, "slow done", "{answer:?}");
    assert_eq!(stopped.status.code(), Some(0), "{}", stopped.log);
    assert_eq!(stopped.processes, Vec::<u32>::new());
    assert_eq!(stopped.sockets, Vec::<std::path::PathBuf>::new());
}

// Promises: LIFE-26
#[tokio::test]
async fn a_call_that_outlasts_the_grace_period_gets_an_error_and_not_silence() {
    let supervisor = Builder::new().misbehave(&[], "grace_period: 300ms").start().await;
    let client = supervisor.client.clone();
    let call = tokio::spawn(async move { client.try_call("misbehave", "hang", &[]).await });
    supervisor.client.wait_in_flight("misbehave").await;
    let stopped = supervisor.end(Signal::SIGINT).await;
    assert_eq!(stopped.status.code(), Some(0), "{}", stopped.log);
    match call.await.expect("the task ends") {
        Ok(answer) => assert_eq!(answer.outcome(), Outcome::HostFault, "{answer:?}"),
        Err(status) => assert_eq!(status.code(), tonic::Code::Unavailable, "{status}"),
    }
    assert_eq!(stopped.processes, Vec::<u32>::new());
}

// Promises: LIFE-27
#[tokio::test]
async fn a_second_signal_ends_the_supervisor_at_once() {
    let supervisor = Builder::new().misbehave(&["--ignore-signals"], "grace_period: 10m").start().await;
    let client = supervisor.client.clone();
    let call = tokio::spawn(async move { client.try_call("misbehave", "hang", &[]).await });
    supervisor.client.wait_log("misbehave", "the call hangs").await;
    supervisor.signal(Signal::SIGTERM);
    supervisor
        .client
        .wait_until("a draining supervisor", async |c| c.status().await.state == "draining")
        .await;
    // With ten minutes of grace only the second signal can end it within this test's patience.
    let stopped = supervisor.end(Signal::SIGTERM).await;
    assert_eq!(stopped.processes, Vec::<u32>::new());
    assert_eq!(stopped.sockets, Vec::<std::path::PathBuf>::new());
    call.abort();
}

// Promises: LAUNCH-18, LIFE-29
#[tokio::test]
async fn a_supervisor_that_is_killed_leaves_no_process_and_its_successor_clears_the_rest() {
    let keep = Scratch::new();
    let run = keep.join("run");
    let supervisor = Builder::new()
        .runtime_dir(run.clone())
        .misbehave(&["--lie", "grandchild", "--ignore-signals"], "instances: 2")
        .plugin("hello", &program("hello"), &[], "")
        .start()
        .await;
    supervisor.client.call("misbehave", "daemon", &[]).await;
    let killed = supervisor.end(Signal::SIGKILL).await;
    assert_eq!(killed.processes, Vec::<u32>::new(), "they die of its death");
    assert!(!killed.sockets.is_empty(), "nobody was left to remove them");

    let foreign = run.join("not-ours");
    std::fs::write(&foreign, "keep me").expect("the runtime directory takes a file");
    let next =
        Builder::new().runtime_dir(run.clone()).plugin("hello", &program("hello"), &[], "").start().await;
    let answer = next.client.call("hello", "greet", &[("name", "heir")]).await;
    assert!(answer.content.contains("heir"), "{answer:?}");
    let stopped = next.stop().await;
    assert_eq!(stopped.sockets, Vec::<std::path::PathBuf>::new());
    assert!(foreign.exists(), "what is not provably ours is left alone");
}
