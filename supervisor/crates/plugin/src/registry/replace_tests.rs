//! Replacements over a scripted launcher.

use std::time::Duration;

use bytes::Bytes;
use talon_plugin_client::ExecuteError;
use talon_plugin_config::spec::ChangedTools;

use super::*;
use crate::driver::fake_launcher::{
    FakeBehavior, FakeLauncher, LaunchPlan, WELL_BEHAVED, call, registry, spec,
};

const GATED: FakeBehavior = FakeBehavior { gated: true, ..WELL_BEHAVED };

async fn ready(registry: &Registry, spec: PluginSpec) -> Plugin {
    let plugin = registry.register(spec).unwrap();
    plugin.settled().await;
    plugin
}

async fn answer(plugin: &Plugin) -> Bytes {
    plugin.executor().execute(call("greet", None)).await.unwrap()
}

/// How many events of a kind were emitted since.
fn kinds(events: &mut tokio::sync::broadcast::Receiver<Arc<crate::Event>>, kind: EventKind) -> usize {
    std::iter::from_fn(|| events.try_recv().ok()).filter(|event| event.kind == kind).count()
}

// Promises: UPGRADE-1
#[tokio::test(start_paused = true)]
async fn calls_go_to_the_new_one_whoever_holds_which_handle() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    let old = ready(&registry, spec("hello")).await;
    let executor = old.executor();
    assert_eq!(answer(&old).await, "0.1");
    let replaced = registry.replace(spec("hello"), DownPolicy::Start).await.unwrap();
    assert_eq!(replaced.outcome, ReplaceOutcome::Replaced);
    for handle in [&old, &replaced.plugin, &registry.get("hello").unwrap()] {
        assert_eq!(answer(handle).await, "0.2");
        assert_eq!(handle.snapshot().starts, 2);
        assert!(Arc::ptr_eq(&handle.spec(), &replaced.plugin.spec()));
    }
    assert_eq!(executor.execute(call("greet", None)).await.unwrap(), "0.2");
    // An operator with an old handle means the plugin.
    old.stop().await.unwrap();
    assert!(replaced.plugin.is_stopped());
    old.start().await.unwrap();
    assert_eq!(answer(&old).await, "0.3");
}

// Promises: UPGRADE-2, UPGRADE-4
#[tokio::test(start_paused = true)]
async fn calls_in_flight_finish_with_the_old_one_and_the_next_replacement_waits_for_them() {
    let script = FakeLauncher::new(GATED);
    let registry = registry(&script);
    let old = ready(&registry, spec("hello")).await;
    let executor = old.executor();
    let in_flight = tokio::spawn(async move { executor.execute(call("greet", None)).await });
    while old.snapshot().calls_in_flight == 0 {
        tokio::task::yield_now().await;
    }
    *script.behavior.lock() = WELL_BEHAVED;
    registry.replace(spec("hello"), DownPolicy::Start).await.unwrap();
    assert_eq!(answer(&old).await, "0.2");
    assert_eq!(script.alive(), 2);
    let second = tokio::spawn({
        let registry = registry.clone();
        async move { registry.replace(spec("hello"), DownPolicy::Start).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(script.launched(), 2, "there are never three");
    script.gate.add_permits(1);
    assert_eq!(in_flight.await.unwrap().unwrap(), "0.1");
    second.await.unwrap().unwrap();
    assert_eq!(answer(&old).await, "0.3");
}

// Promises: UPGRADE-2
#[tokio::test(start_paused = true)]
async fn a_call_that_is_never_ready_to_end_is_cut_off_after_the_grace_period() {
    let script = FakeLauncher::new(GATED);
    let registry = registry(&script);
    let old = ready(&registry, spec("hello")).await;
    let executor = old.executor();
    let in_flight = tokio::spawn(async move { executor.execute(call("greet", None)).await });
    while old.snapshot().calls_in_flight == 0 {
        tokio::task::yield_now().await;
    }
    registry.replace(spec("hello"), DownPolicy::Start).await.unwrap();
    assert!(matches!(in_flight.await.unwrap(), Err(ExecuteError::Stopped)));
}

// Promises: UPGRADE-3
#[tokio::test(start_paused = true)]
async fn one_that_does_not_become_ready_leaves_the_old_one() {
    for plan in [LaunchPlan::Fails, LaunchPlan::Refused, LaunchPlan::Panics] {
        let script = FakeLauncher::new(WELL_BEHAVED);
        let registry = registry(&script);
        let old = ready(&registry, spec("hello")).await;
        let mut events = registry.events().subscribe();
        script.plan([plan]);
        let error = registry.replace(spec("hello"), DownPolicy::Start).await.unwrap_err();
        assert!(matches!(error, ReplaceError::NewNotReady { .. }), "{error}");
        assert_eq!(answer(&old).await, "0.1");
        assert_eq!(script.alive(), 1, "{plan:?}");
        assert!(registry.inner.in_transition.lock().is_empty());
        assert_eq!(kinds(&mut events, EventKind::ReplacementFailed), 1);
        assert!(old.snapshot().replacement_problem.is_some());
        // The next one is better, and then nothing is wrong any more.
        registry.replace(spec("hello"), DownPolicy::Start).await.unwrap();
        assert_eq!(old.snapshot().replacement_problem, None);
        assert_eq!(kinds(&mut events, EventKind::PluginReplaced), 1);
    }
}

// Promises: UPGRADE-14
#[tokio::test(start_paused = true)]
async fn after_a_failed_replacement_a_restart_takes_what_came_up_last_unless_it_is_asked_for() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    let plugin = ready(&registry, spec("hello")).await;
    let died = async || {
        let starts = plugin.snapshot().starts;
        script.latest().exit("exit code 1");
        plugin.wait_until(|view| view.starts > starts && view.state == State::Ready).await;
    };
    let of_last_good = || std::mem::take(&mut *script.of_last_good.lock());
    died().await;
    assert_eq!(of_last_good(), [false, false], "nothing has failed yet");
    registry.record_refused_replacement(plugin.name(), &"its file is gone".into());
    died().await;
    assert_eq!(of_last_good(), [true]);
    // Its first attempt fails; the following ones are automatic retries.
    script.plan([LaunchPlan::Fails]);
    plugin.restart().await.unwrap_err();
    plugin.wait_until(|view| view.state == State::Ready).await;
    assert_eq!(of_last_good(), [false, true]);
    plugin.stop().await.unwrap();
    plugin.start().await.unwrap();
    assert_eq!(of_last_good(), [false]);
    // For a running plugin it does not request another process.
    plugin.start().await.unwrap();
    died().await;
    assert_eq!(of_last_good(), [true]);
    registry.replace(spec("hello"), DownPolicy::Start).await.unwrap();
    assert_eq!(of_last_good(), [false]);
}

// Promises: UPGRADE-3
#[tokio::test(start_paused = true)]
async fn one_bad_instance_is_enough_to_keep_the_old_one() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    let three = || PluginSpec { instances: 3, ..spec("hello") };
    let old = ready(&registry, three()).await;
    script.plan([LaunchPlan::Ready, LaunchPlan::Fails, LaunchPlan::Ready]);
    let error = registry.replace(three(), DownPolicy::Start).await.unwrap_err();
    assert!(error.to_string().contains("no handshake"), "{error}");
    assert_eq!(script.alive(), 3);
    assert!(answer(&old).await.ends_with(b".1"));
}

// Promises: UPGRADE-5
#[tokio::test(start_paused = true)]
async fn what_does_not_run_is_started_if_that_is_meant() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    let plugin = ready(&registry, spec("hello")).await;
    plugin.stop().await.unwrap();
    let left = registry.replace(spec("hello"), DownPolicy::StayDown).await.unwrap();
    assert_eq!((left.outcome, script.alive()), (ReplaceOutcome::Down, 0));
    let started = registry.replace(spec("hello"), DownPolicy::Start).await.unwrap();
    assert_eq!(started.outcome, ReplaceOutcome::Started);
    assert_eq!(answer(&plugin).await, "0.2");
    // Whether it is enabled is a separate setting.
    let disabled = PluginSpec { enabled: false, ..spec("hello") };
    assert_eq!(
        registry.replace(disabled.clone(), DownPolicy::StayDown).await.unwrap().outcome,
        ReplaceOutcome::Down
    );
    assert!(plugin.newest().is_stopped() || !plugin.newest().is_desired_up());
    assert_eq!(registry.replace(disabled, DownPolicy::StayDown).await.unwrap().outcome, ReplaceOutcome::Down);
    assert_eq!(
        registry.replace(spec("hello"), DownPolicy::StayDown).await.unwrap().outcome,
        ReplaceOutcome::Started
    );
}

// Promises: UPGRADE-5
#[tokio::test(start_paused = true)]
async fn nothing_that_failed_stands_in_the_way_of_what_is_better() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    script.plan([LaunchPlan::Refused]);
    let plugin = ready(&registry, spec("hello")).await;
    assert!(!plugin.is_serving());
    script.plan([LaunchPlan::Refused]);
    let error = registry.replace(spec("hello"), DownPolicy::StayDown).await.unwrap_err();
    assert!(matches!(error, ReplaceError::NotReady(_)), "{error}");
    assert_eq!(
        registry.replace(spec("hello"), DownPolicy::StayDown).await.unwrap().outcome,
        ReplaceOutcome::Started
    );
    assert!(
        registry.inner.in_transition.lock().is_empty() || registry.inner.in_transition.lock()[0].is_stopped()
    );
}

// Promises: UPGRADE-6
#[tokio::test(start_paused = true)]
async fn what_is_declared_is_told_once_and_only_if_it_differs() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    let plugin = ready(&registry, PluginSpec { instances: 2, ..spec("hello") }).await;
    let (mut events, mut changes) = (registry.events().subscribe(), registry.subscribe_changes());
    changes.borrow_and_update();
    registry.replace(PluginSpec { instances: 2, ..spec("hello") }, DownPolicy::Start).await.unwrap();
    assert_eq!(kinds(&mut events, EventKind::CapabilitiesChanged), 0);
    assert!(!changes.has_changed().unwrap());

    script.declared.lock().actions[0].description = "Greets.".to_owned();
    script.plan([LaunchPlan::Ready, LaunchPlan::Fails]);
    registry.replace(PluginSpec { instances: 2, ..spec("hello") }, DownPolicy::Start).await.unwrap_err();
    // One that is taken away again was never there.
    assert_eq!(kinds(&mut events, EventKind::CapabilitiesChanged), 0);
    assert_eq!(plugin.capability().unwrap().actions["greet"].description, "");

    registry.replace(PluginSpec { instances: 2, ..spec("hello") }, DownPolicy::Start).await.unwrap();
    let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).map(|event| event.kind).collect();
    let count = |kind| told.iter().filter(|told| **told == kind).count();
    assert_eq!((count(EventKind::CapabilitiesChanged), count(EventKind::ToolsChanged)), (1, 1));
    assert!(changes.has_changed().unwrap());
    assert_eq!(plugin.capability().unwrap().actions["greet"].description, "Greets.");
    assert_eq!(plugin.snapshot().changed_actions, ["greet"]);
}

// Promises: UPGRADE-5
#[tokio::test(start_paused = true)]
async fn one_that_is_stopped_meanwhile_stays_down() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    let plugin = ready(&registry, spec("hello")).await;
    script.plan([LaunchPlan::Hangs]);
    let replacing = tokio::spawn({
        let registry = registry.clone();
        async move { registry.replace(spec("hello"), DownPolicy::Start).await }
    });
    while script.alive() < 2 {
        tokio::task::yield_now().await;
    }
    plugin.stop().await.unwrap();
    // What hangs is given up when the supervisor goes, too.
    registry.shutdown(Duration::ZERO).await;
    replacing.await.unwrap().unwrap_err();
    assert_eq!(script.alive(), 0);
}

// Promises: UPGRADE-7
#[tokio::test(start_paused = true)]
async fn nothing_is_left_when_the_supervisor_goes_in_the_middle() {
    let script = FakeLauncher::new(GATED);
    let registry = registry(&script);
    let plugin = ready(&registry, spec("hello")).await;
    let executor = plugin.executor();
    let in_flight = tokio::spawn(async move { executor.execute(call("greet", None)).await });
    while plugin.snapshot().calls_in_flight == 0 {
        tokio::task::yield_now().await;
    }
    // The first drains, the second serves.
    registry.replace(spec("hello"), DownPolicy::Start).await.unwrap();
    registry.shutdown(Duration::ZERO).await;
    in_flight.await.unwrap().unwrap_err();
    assert_eq!(script.alive(), 0);
    let error = registry.replace(spec("hello"), DownPolicy::Start).await.unwrap_err();
    assert!(matches!(error, ReplaceError::Unknown { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_processes_do_not_notice_changes_without_new_ones() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    let plugin = ready(&registry, spec("hello")).await;
    let (before, mut limits) = (plugin.spec(), spec("hello"));
    limits.calls.concurrency = Some(1);
    limits.changed_tools = ChangedTools::Block;
    assert!(registry.adjust(limits).await);
    assert!(!Arc::ptr_eq(&before, &plugin.spec()));
    assert_eq!((plugin.spec().calls.concurrency, script.launched()), (Some(1), 1));
    let other = PluginSpec { args: vec!["--other".to_owned()], ..spec("hello") };
    assert!(!registry.adjust(other).await, "that is another process");
    assert!(!registry.adjust(spec("nobody")).await);
}

// Promises: UPGRADE-4
#[tokio::test(start_paused = true)]
async fn a_plugin_is_removed_after_its_replacement() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    let plugin = ready(&registry, spec("hello")).await;
    let replacing = registry.replace(spec("hello"), DownPolicy::Start);
    let (replaced, removed) = tokio::join!(replacing, registry.deregister(plugin.name()));
    assert!(removed);
    // Whichever came first, nothing is left.
    drop(replaced);
    assert_eq!((script.alive(), registry.list().len()), (0, 0));
}
