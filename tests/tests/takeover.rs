//! One supervisor after the other, while the plugins run on.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use talon_proto::host::Outcome;
use talon_tests::{Builder, ServiceManager, Supervisor, alive, example, seqpacket_pair};

async fn pid(supervisor: &Supervisor, plugin: &str) -> u32 {
    supervisor.client.plugin(plugin).await.instances[0].pid
}

async fn echoes(supervisor: &Supervisor, text: &str) {
    let answer = supervisor.client.call("misbehave", "echo", &[("text", text)]).await;
    assert_eq!(answer.content, text, "{answer:?}\n{}", supervisor.log());
}

/// A supervisor that answers after all that happened, with the process that it had.
async fn serves_on(supervisor: &Supervisor, plugin: u32) {
    supervisor.client.wait_state("misbehave", "ready").await;
    echoes(supervisor, "still here").await;
    assert_eq!(pid(supervisor, "misbehave").await, plugin, "{}", supervisor.log());
}

fn ours(builder: Builder) -> Builder {
    builder.misbehave(&[], "backoff_initial: 10ms\nbackoff_max: 50ms\nready_wait: 20s")
}

// Promises: HANDOVER-20
#[tokio::test]
async fn a_takeover_keeps_the_plugins_and_their_processes() {
    let old = ours(Builder::new()).start().await;
    let (plugin, before) = (pid(&old, "misbehave").await, old.pid());
    let new = old.start_sibling(&["--takeover"]);
    let after = new.pid();
    let (new, said) = old.succeeded_by(new).await;
    assert!(said.contains(&format!("handed over to pid {after}")), "{said}");
    serves_on(&new, plugin).await;
    let status = new.client.status().await;
    assert_eq!((status.pid, status.taken_over), (after, 1));
    assert_ne!(before, after);
    // And once more: what was taken over can be handed over.
    let third = new.start_sibling(&["--takeover"]);
    let (third, _) = new.succeeded_by(third).await;
    serves_on(&third, plugin).await;
    let stopped = third.stop().await;
    assert!(stopped.status.success(), "{}", stopped.log);
    assert_eq!((stopped.processes, stopped.sockets), (vec![], vec![]), "{}", stopped.log);
}

// Promises: HANDOVER-21
#[tokio::test]
async fn the_store_of_a_service_manager_keeps_the_plugins_between_two_supervisors() {
    let manager = ServiceManager::new();
    let old = manager.attach(ours(Builder::new())).start().await;
    let plugin = pid(&old, "misbehave").await;
    manager.clear_messages();
    let (status, said, left) = old.hands_over().await;
    assert!(status.success(), "{said}");
    assert_eq!(manager.stored(), ["handover"], "{said}");
    assert!(manager.messages().contains(&"FDPOLL=0".to_owned()));
    assert!(alive(plugin), "{said}");
    let new = manager.attach(ours(Builder::on_leftovers(left))).start().await;
    serves_on(&new, plugin).await;
    // What lies in the store would be taken up by one that starts after a crash.
    manager.wait_message(|line| line == "FDSTOREREMOVE=1").await;
    assert!(manager.stored().is_empty());
    let (_, said, _left) = new.hands_over().await;
    assert_eq!(manager.stored(), ["handover"], "{said}");
    // The manager releases the descriptors at a real stop.
    manager.drop_stored();
    gone(plugin).await;
}

/// There is no notification of the end of a process that is not our child.
async fn gone(pid: u32) {
    let mut pause = tokio::time::interval(std::time::Duration::from_millis(10));
    for _ in 0..6000 {
        if !alive(pid) {
            return;
        }
        pause.tick().await;
    }
    panic!("process {pid} is still there");
}

// Promises: HANDOVER-22
#[tokio::test]
async fn a_call_in_flight_is_answered_and_one_that_comes_meanwhile_waits() {
    let old = ours(Builder::new()).start().await;
    let plugin = pid(&old, "misbehave").await;
    let client = old.client.clone();
    let slow = tokio::spawn(async move { client.call("misbehave", "slow", &[("ms", "1500")]).await });
    old.client.wait_in_flight("misbehave").await;
    let new = old.start_sibling(&["--takeover"]);
    old.wait_log("asks to take over").await;
    let answer = slow.await.expect("the call goes on");
    assert_eq!(answer.outcome(), Outcome::Ok, "{answer:?}");
    let (new, _) = old.succeeded_by(new).await;
    serves_on(&new, plugin).await;
}

// Promises: HANDOVER-23
#[tokio::test]
async fn state_is_there_before_and_after() {
    let old = Builder::new().plugin("notes", &example("notes"), &[], "").start().await;
    let add = old.client.call("notes", "add", &[("text", "before")]).await;
    assert_eq!(add.outcome(), Outcome::Ok, "{add:?}");
    let new = old.start_sibling(&["--takeover"]);
    let (new, said) = old.succeeded_by(new).await;
    new.client.wait_state("notes", "ready").await;
    let add = new.client.call("notes", "add", &[("text", "after")]).await;
    assert_eq!(add.outcome(), Outcome::Ok, "{add:?}\n{said}\n{}", new.log());
    let list = new.client.call("notes", "list", &[]).await;
    assert!(list.content.contains("before") && list.content.contains("after"), "{list:?}");
}

// Promises: HANDOVER-24
#[tokio::test]
async fn without_a_supervisor_a_takeover_is_a_start_like_any_other() {
    let old = ours(Builder::new()).start().await;
    let socket = old.socket();
    let stopped = old.stop().await;
    let new = ours(Builder::on_leftovers(stopped.left)).serve_args(&["--takeover"]).start().await;
    assert_eq!(new.socket(), socket);
    assert!(new.log().contains("no supervisor to take over from"), "{}", new.log());
    echoes(&new, "hi").await;
}

// Promises: HANDOVER-25
#[tokio::test]
async fn one_whose_configuration_is_refused_takes_nothing() {
    let old = ours(Builder::new()).start().await;
    let plugin = pid(&old, "misbehave").await;
    let (status, said) = old.start_sibling(&["--takeover", "--set", "guard.timeout=never"]).ended().await;
    assert_eq!(status.code(), Some(6), "{said}");
    serves_on(&old, plugin).await;
}

// Promises: HANDOVER-25
#[tokio::test]
async fn one_that_fails_late_gives_everything_back() {
    let old = ours(Builder::new()).start().await;
    let plugin = pid(&old, "misbehave").await;
    // Its state cannot be kept: it learns so after everything was offered to it.
    let (status, said) =
        old.start_sibling(&["--takeover", "--set", "state.program=/bin/false"]).ended().await;
    assert!(!status.success(), "{said}");
    old.wait_log("serving on").await;
    serves_on(&old, plugin).await;
    // It can still be taken over from.
    let new = old.start_sibling(&["--takeover"]);
    let (new, _) = old.succeeded_by(new).await;
    serves_on(&new, plugin).await;
}

// Promises: HANDOVER-25
#[tokio::test]
async fn one_that_is_killed_in_the_middle_takes_nothing_with_it() {
    let old = ours(Builder::new()).start().await;
    let plugin = pid(&old, "misbehave").await;
    let new = old.start_sibling(&["--takeover"]);
    new.wait_log("taking over from the supervisor that runs").await;
    new.signal(Signal::SIGKILL);
    let _ = new.ended().await;
    // It was in time, or it was not: in any case the plugin serves.
    old.wait_log("serving on").await;
    serves_on(&old, plugin).await;
}

// Promises: HANDOVER-26
#[tokio::test]
async fn an_old_one_that_is_killed_in_the_middle_leaves_a_start_like_any_other() {
    let old = ours(Builder::new()).start().await;
    let client = old.client.clone();
    let slow = tokio::spawn(async move { client.try_call("misbehave", "slow", &[("ms", "20000")]).await });
    old.client.wait_in_flight("misbehave").await;
    let new = old.start_sibling(&["--takeover"]);
    new.wait_log("taking over from the supervisor that runs").await;
    let plugins = old.plugin_processes();
    old.signal(Signal::SIGKILL);
    let (status, said) = new.ended().await;
    assert!(!status.success() && said.contains("the takeover failed"), "{said}");
    let (_, _, left) = old.hands_over().await;
    for pid in plugins {
        gone(pid).await;
    }
    let again = ours(Builder::on_leftovers(left)).start().await;
    echoes(&again, "anew").await;
    drop(slow);
}

// Promises: HANDOVER-27
#[tokio::test]
async fn two_at_once_get_one_takeover_and_one_answer() {
    let old = ours(Builder::new()).start().await;
    let plugin = pid(&old, "misbehave").await;
    let client = old.client.clone();
    let slow = tokio::spawn(async move { client.call("misbehave", "slow", &[("ms", "3000")]).await });
    old.client.wait_in_flight("misbehave").await;
    let (one, other) = (old.start_sibling(&["--takeover"]), old.start_sibling(&["--takeover"]));
    old.wait_log("asks to take over").await;
    // The loser learns it at once, or meets a supervisor that accepts no client, or the next one.
    let (new, loser) = tokio::select! {
        () = one.wait_log("taking over from the supervisor that runs") => (one, other),
        () = other.wait_log("taking over from the supervisor that runs") => (other, one),
    };
    let (status, said) = loser.ended().await;
    assert_eq!(status.code(), Some(8), "{said}");
    assert_eq!(slow.await.expect("the call goes on").outcome(), Outcome::Ok);
    let (new, _) = old.succeeded_by(new).await;
    serves_on(&new, plugin).await;
}

// Promises: HANDOVER-28
#[tokio::test]
async fn a_plugin_that_dies_during_the_takeover_is_started_anew() {
    let old = ours(Builder::new()).start().await;
    let plugin = pid(&old, "misbehave").await;
    let new = old.start_sibling(&["--takeover"]);
    new.wait_log("taking over from the supervisor that runs").await;
    let _ = kill(Pid::from_raw(plugin.cast_signed()), Signal::SIGKILL);
    let (new, _) = old.succeeded_by(new).await;
    new.client.wait_for("misbehave", "back", |p| p.state == "ready" && p.instances[0].pid != plugin).await;
    echoes(&new, "back").await;
    let stopped = new.stop().await;
    assert_eq!((stopped.processes, stopped.sockets), (vec![], vec![]), "{}", stopped.log);
}

// Promises: HANDOVER-30
#[tokio::test]
async fn what_the_store_kept_and_cannot_be_used_makes_a_cold_start() {
    let manager = ServiceManager::new();
    let old = manager.attach(ours(Builder::new())).start().await;
    let plugin = pid(&old, "misbehave").await;
    let (_, _, left) = old.hands_over().await;
    let (strange, _other) = seqpacket_pair();
    manager.replace_stored("handover", strange);
    gone(plugin).await;
    let new = manager.attach(ours(Builder::on_leftovers(left))).start().await;
    assert!(new.log().contains("cannot be used"), "{}", new.log());
    echoes(&new, "anew").await;
    assert!(manager.stored().is_empty());
}

// Promises: HANDOVER-29
#[tokio::test]
async fn a_start_that_fails_leaves_the_store_to_the_next() {
    let manager = ServiceManager::new();
    let old = manager.attach(ours(Builder::new())).start().await;
    let plugin = pid(&old, "misbehave").await;
    let (_, _, left) = old.hands_over().await;
    // A broken upgrade: one that does not even read its configuration, and one that fails after it has
    // looked.
    let broken = manager.attach(ours(Builder::on_leftovers(left)).config("no_such_key: 1"));
    let refused = broken.start_refused().await;
    assert_eq!(refused.status.code(), Some(6));
    let left = broken.into_leftovers();
    let broken = manager.attach(ours(Builder::on_leftovers(left)).state("program: /bin/false"));
    let refused = broken.start_refused().await;
    assert!(!refused.status.success());
    assert!(alive(plugin), "{}", String::from_utf8_lossy(&refused.stderr));
    assert_eq!(manager.stored(), ["handover"]);
    // The old one can be started again, and finds them.
    let new = manager.attach(ours(Builder::on_leftovers(broken.into_leftovers()))).start().await;
    serves_on(&new, plugin).await;
}

// Promises: HANDOVER-31
#[tokio::test]
async fn a_service_manager_that_does_not_read_gets_a_stop_like_any_other() {
    let manager = ServiceManager::new();
    let old = manager.attach(ours(Builder::new())).start().await;
    let plugin = pid(&old, "misbehave").await;
    manager.pause();
    let (status, said, _left) = old.hands_over().await;
    assert!(status.success(), "{said}");
    assert!(said.contains("nothing was handed over"), "{said}");
    gone(plugin).await;
}

// Promises: HANDOVER-32
#[tokio::test]
async fn a_second_signal_hands_over_nothing() {
    let manager = ServiceManager::new();
    let old = manager.attach(ours(Builder::new())).start().await;
    let plugin = pid(&old, "misbehave").await;
    let client = old.client.clone();
    let slow = tokio::spawn(async move { client.try_call("misbehave", "slow", &[("ms", "20000")]).await });
    old.client.wait_in_flight("misbehave").await;
    old.signal(Signal::SIGTERM);
    old.wait_log("handing over").await;
    let (status, said, _left) = old.hands_over().await;
    assert!(status.success(), "{said}");
    assert!(said.contains("stopping at once"), "{said}");
    assert!(manager.stored().is_empty());
    gone(plugin).await;
    drop(slow);
}

// Promises: HANDOVER-33
#[tokio::test]
async fn quarantine_outlives_the_supervisor() {
    let old = ours(Builder::new()).config("guard:\n  quarantine: { marks: 1, window: 1h }").start().await;
    let plugin = pid(&old, "misbehave").await;
    old.client.call("misbehave", "hostile", &[]).await;
    old.client.wait_for("misbehave", "set apart", |plugin| plugin.quarantined).await;
    let new = old.start_sibling(&["--takeover"]);
    let (new, _) = old.succeeded_by(new).await;
    let refused = new.client.call("misbehave", "echo", &[("text", "hi")]).await;
    assert_eq!((refused.outcome(), refused.reason.as_str()), (Outcome::Refused, "quarantined"));
    assert_eq!(pid(&new, "misbehave").await, plugin);
}
