//! A plugin is replaced by a newer one, and its callers do not notice.

use std::path::PathBuf;

use talon_proto::host::{Outcome, Plugin};
use talon_tests::{Builder, Supervisor, Traffic, alive, install_over, install_script_over, program};
use tokio_stream::StreamExt;
use tonic::Code;

const QUICK: &str = "backoff_initial: 10ms\nbackoff_max: 50ms\ngrace_period: 20s";

/// A supervisor with the misbehaving plugin in a place where the test can put another one.
async fn supervised(more: &str) -> (Supervisor, PathBuf) {
    let builder = Builder::new();
    let path = builder.scratch().install(&program("misbehave"), "bin/misbehave");
    let supervisor = builder.plugin("misbehave", &path, &[], &format!("{QUICK}\n{more}")).start().await;
    (supervisor, path)
}

fn pids(plugin: &Plugin) -> Vec<u32> {
    plugin.instances.iter().map(|instance| instance.pid).collect()
}

// Promises: UPGRADE-1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_fails_while_a_plugin_is_replaced_twenty_times() {
    let (supervisor, path) = supervised("").await;
    let traffic = Traffic::start(&supervisor.client, "misbehave", 8);
    let mut digests = std::collections::BTreeSet::new();
    for version in 0..20 {
        install_over(&path, &program("misbehave"), &format!("version {version}"));
        let replaced = supervisor.client.reload_plugin("misbehave").await.expect("it is good");
        assert_eq!(replaced.outcome, "replaced");
        assert_ne!(replaced.old_digest, replaced.new_digest);
        digests.insert(replaced.new_digest);
        traffic.wait_more(20).await;
    }
    let (answered, failures) = traffic.end().await;
    assert_eq!(failures, Vec::<String>::new(), "of {answered}");
    assert_eq!(digests.len(), 20);
    let plugin = supervisor.client.plugin("misbehave").await;
    assert_eq!((plugin.instances[0].generation, plugin.deaths), (21, 0));
    let stopped = supervisor.stop().await;
    assert_eq!((stopped.processes, stopped.sockets), (Vec::new(), Vec::new()), "{}", stopped.log);
}

// Promises: UPGRADE-2
#[tokio::test]
async fn a_call_in_flight_finishes_with_the_process_it_began_with() {
    let (supervisor, _) = supervised("").await;
    let old = supervisor.client.plugin("misbehave").await.instances[0].pid;
    let client = supervisor.client.clone();
    let long = tokio::spawn(async move {
        client.call("misbehave", "slow", &[("ms", "1500"), ("text", "patient")]).await
    });
    supervisor.client.wait_in_flight("misbehave").await;
    let replaced = supervisor.client.reload_plugin("misbehave").await.expect("it is good");
    let new = replaced.plugin.expect("the answer has a plugin").instances[0].pid;
    assert_ne!(old, new);
    assert!(alive(old), "it has a call to finish");
    assert_eq!(supervisor.client.call("misbehave", "echo", &[("text", "hi")]).await.content, "hi");
    assert_eq!(long.await.expect("the caller does not panic").content, "slow patient");
    talon_tests::until("the old one gone", || !alive(old)).await;
}

// Promises: UPGRADE-3
#[tokio::test]
async fn a_broken_new_version_leaves_the_old_one() {
    let (supervisor, path) = supervised("").await;
    let before = pids(&supervisor.client.plugin("misbehave").await);
    let mut events = supervisor.client.events("misbehave").await;
    install_script_over(&path, "#!/bin/sh\necho 'no such library' >&2\nexit 3\n");
    let status = supervisor.client.reload_plugin("misbehave").await.expect_err("it is broken");
    assert_eq!(status.code(), Code::FailedPrecondition);
    for part in ["keeps serving", "exit code 3", "no such library"] {
        assert!(status.message().contains(part), "{part}: {}", status.message());
    }
    let plugin = supervisor.client.plugin("misbehave").await;
    assert_eq!((pids(&plugin), plugin.state.as_str()), (before, "ready"));
    assert!(plugin.replacement_problem.contains("exit code 3"), "{plugin:?}");
    assert_eq!(supervisor.client.call("misbehave", "echo", &[("text", "old")]).await.content, "old");
    loop {
        let event = events.next().await.expect("the events go on").expect("the stream is whole");
        if event.kind == "replacement_failed" {
            break;
        }
        assert!(event.kind != "state_changed" || event.fields["replacement"] == "new", "{event:?}");
    }
    // One that is good again is taken, and nothing is wrong any more.
    install_over(&path, &program("misbehave"), "better");
    supervisor.client.reload_plugin("misbehave").await.expect("it is good");
    assert_eq!(supervisor.client.plugin("misbehave").await.replacement_problem, "");
}

// Promises: UPGRADE-3
#[tokio::test]
async fn one_that_is_never_ready_is_given_up_after_its_start_timeout() {
    let (supervisor, path) = supervised("start_timeout: 500ms").await;
    let before = pids(&supervisor.client.plugin("misbehave").await);
    install_script_over(&path, "#!/bin/sh\nexec sleep 1000\n");
    let status = supervisor.client.reload_plugin("misbehave").await.expect_err("it says nothing");
    assert!(status.message().contains("0.5 s"), "{}", status.message());
    assert_eq!(pids(&supervisor.client.plugin("misbehave").await), before);
    // Nothing is left of it but the old one, whose processes these are.
    let old = before[0];
    let ours = |pid: &u32| talon_tests::descendants(*pid).contains(&old) || *pid == old;
    let processes = supervisor.plugin_processes();
    assert!(processes.iter().all(ours), "{processes:?} beside {old}");
}

// Promises: UPGRADE-1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_instances_all_must_be_ready() {
    let (supervisor, path) = supervised("instances: 3").await;
    let before = pids(&supervisor.client.plugin("misbehave").await);
    let traffic = Traffic::start(&supervisor.client, "misbehave", 4);
    traffic.wait_more(10).await;
    install_over(&path, &program("misbehave"), "two");
    let replaced = supervisor.client.reload_plugin("misbehave").await.expect("it is good");
    let plugin = replaced.plugin.expect("the answer has a plugin");
    assert!(plugin.instances.iter().all(|instance| instance.state == "ready"), "{plugin:?}");
    assert!(pids(&plugin).iter().all(|pid| !before.contains(pid)));
    let (_, failures) = traffic.end().await;
    assert_eq!(failures, Vec::<String>::new());
}

// Promises: UPGRADE-4
#[tokio::test]
async fn two_replacements_at_once_come_one_after_the_other() {
    let (supervisor, _) = supervised("").await;
    let (one, two) = tokio::join!(
        supervisor.client.reload_plugin("misbehave"),
        supervisor.client.reload_plugin("misbehave")
    );
    assert_eq!(one.expect("it is good").outcome, "replaced");
    assert_eq!(two.expect("it is good").outcome, "replaced");
    assert_eq!(supervisor.client.plugin("misbehave").await.instances[0].generation, 3);
}

// Promises: UPGRADE-9
#[tokio::test]
async fn the_command_line_says_what_came_of_it() {
    let (supervisor, path) = supervised("").await;
    let out = supervisor.cli(&["plugin", "reload", "misbehave", "--output", "json"]).await;
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let said: serde_json::Value = serde_json::from_slice(&out.stdout).expect("it is JSON");
    assert_eq!(said["outcome"], "replaced");
    assert_eq!(said["old_digest"], said["new_digest"]);
    // What is stopped is started.
    supervisor.client.stop("misbehave").await.expect("an operator may");
    let out = supervisor.cli(&["plugin", "reload", "misbehave"]).await;
    assert!(String::from_utf8_lossy(&out.stdout).contains("misbehave: started"), "{out:?}");
    std::fs::remove_file(&path).expect("it is there");
    let out = supervisor.cli(&["plugin", "reload", "misbehave"]).await;
    assert_eq!(out.status.code(), Some(4), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stderr).contains("the old one keeps running"), "{out:?}");
    assert_eq!(supervisor.cli(&["plugin", "reload", "nobody"]).await.status.code(), Some(3));
    assert_eq!(supervisor.client.call("misbehave", "echo", &[("text", "on")]).await.content, "on");
}

// Promises: UPGRADE-8
#[tokio::test]
async fn what_a_plugin_keeps_is_there_for_its_successor() {
    let (supervisor, _) = supervised("").await;
    let state = async |op: &str, value: &str| {
        let args = [("op", op), ("key", "k"), ("value", value)];
        supervisor.client.call("misbehave", "state", &args).await
    };
    assert_eq!(state("set", "kept").await.outcome(), Outcome::Ok);
    supervisor.client.reload_plugin("misbehave").await.expect("it is good");
    let got = state("get", "").await;
    assert!(got.content.contains("kept"), "{got:?}");
}

// Promises: UPGRADE-6
#[tokio::test]
async fn what_differs_of_its_actions_is_told_once() {
    let (supervisor, _) = supervised("").await;
    let mut events = supervisor.client.events("misbehave").await;
    supervisor.client.reload_plugin("misbehave").await.expect("it is good");
    supervisor.client.stop("misbehave").await.expect("an operator may");
    let mut changed = 0;
    loop {
        let event = events.next().await.expect("the events go on").expect("the stream is whole");
        changed += usize::from(event.kind == "capabilities_changed");
        if event.kind == "state_changed"
            && event.fields["to"] == "stopped"
            && !event.fields.contains_key("replacement")
        {
            break;
        }
    }
    assert_eq!(changed, 0, "it offers the same");
}
