//! Drivers against a scripted launcher and paused time: every wait here is a real timer of the driver, and
//! the test clock moves on only when nothing else can happen.

use std::sync::Arc;
use std::time::Duration;

use talon_plugin_client::ExecuteError;
use talon_plugin_config::spec::{Dialect, LifecycleSettings, PluginSpec};
use tokio::time::Instant;

use super::fake_launcher::{FakeBehavior, FakeLauncher, LaunchPlan, WELL_BEHAVED, call, registry, spec};
use crate::execute::ExecuteRequest;
use crate::lifecycle::State;
use crate::overdue_call::MAX_WATCHED;
use crate::plugin::{OperateError, Plugin};
use crate::registry::Registry;

const SECOND: Duration = Duration::from_secs(1);

fn register(script: &Arc<FakeLauncher>, spec: PluginSpec) -> (Registry, Plugin) {
    let registry = registry(script);
    let plugin = registry.register(spec).unwrap();
    (registry, plugin)
}

async fn ready(script: &Arc<FakeLauncher>) -> (Registry, Plugin) {
    let (registry, plugin) = register(script, spec("hello"));
    plugin.settled().await;
    assert_eq!(plugin.snapshot().state, State::Ready);
    (registry, plugin)
}

/// A call that runs until the gate opens.
async fn in_flight(plugin: &Plugin) -> tokio::task::JoinHandle<Result<bytes::Bytes, ExecuteError>> {
    let before = plugin.executor().in_flight();
    let executor = plugin.executor();
    let task = tokio::spawn(async move { executor.execute(call("greet", Some(60 * SECOND))).await });
    while plugin.executor().in_flight() == before {
        tokio::task::yield_now().await;
    }
    task
}

fn text(answer: Result<bytes::Bytes, ExecuteError>) -> String {
    String::from_utf8(answer.unwrap().to_vec()).unwrap()
}

// Promises: LIFE-17
#[tokio::test(start_paused = true)]
async fn a_call_in_flight_fails_at_once_when_its_process_dies_and_a_later_one_waits_for_the_next() {
    let script = FakeLauncher::new(FakeBehavior { gated: true, ..WELL_BEHAVED });
    let (_registry, plugin) = ready(&script).await;
    let hurt = in_flight(&plugin).await;
    let began = Instant::now();
    script.latest().exit("killed by SIGSEGV");
    let error = hurt.await.unwrap().unwrap_err();
    assert!(error.retryable());
    assert_eq!(error.to_string(), "the plugin died during the call (killed by SIGSEGV)");
    assert_eq!(began.elapsed(), Duration::ZERO);

    // The answer that the dead generation never gave is lost: the next call gets its own.
    script.gate.add_permits(1);
    assert_eq!(text(plugin.executor().execute(call("greet", Some(60 * SECOND))).await), "0.2");
    assert_eq!(began.elapsed(), Duration::ZERO, "the first restart is at once");

    script.latest().exit("killed by SIGSEGV");
    plugin.wait_until(|view| view.state != State::Ready).await;
    script.gate.add_permits(1);
    assert_eq!(text(plugin.executor().execute(call("greet", Some(60 * SECOND))).await), "0.3");
    assert!(began.elapsed() >= Duration::from_millis(200), "it waited for the backoff");
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_told_as_the_death_it_came_from() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let (_registry, plugin) = ready(&script).await;
    let executor = plugin.executor();
    let broken = tokio::spawn(async move { executor.execute(call("break", Some(60 * SECOND))).await });
    while plugin.executor().in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    script.latest().exit("exit code 3");
    assert!(matches!(broken.await.unwrap(), Err(ExecuteError::Died { exit, .. }) if exit == "exit code 3"));

    plugin.settled().await;
    let broken = plugin.executor().execute(call("break", Some(60 * SECOND))).await;
    assert!(matches!(broken, Err(ExecuteError::Transport(_))), "its process lives on");
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_keeps_dying_is_failed_and_calls_say_so_at_once() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let (_registry, plugin) = ready(&script).await;
    for launched in 1..=4 {
        plugin.settled().await;
        assert_eq!(script.launched(), launched);
        script.latest().exit("killed by SIGSEGV");
        let deaths = u32::try_from(launched).unwrap();
        plugin.wait_until(|view| view.deaths == deaths).await;
    }
    plugin.settled().await;
    let snapshot = plugin.snapshot();
    assert_eq!((snapshot.state, snapshot.deaths), (State::Failed, 4));
    let began = Instant::now();
    let error = plugin.executor().execute(call("greet", Some(60 * SECOND))).await.unwrap_err();
    assert!(!error.retryable());
    assert!(error.to_string().ends_with("then `talon plugin start hello`"), "{error}");
    assert_eq!(began.elapsed(), Duration::ZERO);

    plugin.start().await.unwrap();
    assert_eq!(text(plugin.executor().execute(call("greet", None)).await), "0.5");
}

#[tokio::test(start_paused = true)]
async fn launches_that_fail_or_panic_are_deaths_and_one_that_is_refused_ends_it() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    script.plan([LaunchPlan::Fails, LaunchPlan::Panics]);
    let (_registry, plugin) = ready(&script).await;
    assert_eq!(plugin.snapshot().deaths, 2);

    script.plan([LaunchPlan::Refused]);
    let error = plugin.restart().await.unwrap_err();
    assert!(matches!(error, OperateError::NotReady { state: State::Refused, .. }), "{error}");
    assert_eq!(script.alive(), 0);
}

#[tokio::test(start_paused = true)]
async fn start_returns_when_the_first_attempt_failed_though_more_follow() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    script.plan([LaunchPlan::Fails]);
    let (_registry, plugin) = register(&script, PluginSpec { enabled: false, ..spec("hello") });
    let idle = plugin.executor().execute(call("greet", None)).await.unwrap_err();
    assert!(idle.to_string().contains("`talon plugin start hello`"), "{idle}");
    let error = plugin.start().await.unwrap_err();
    assert_eq!(error.to_string(), "hello is backoff: no handshake; restart 1 of 3 follows");
    plugin.settled().await;
    assert_eq!(plugin.snapshot().state, State::Ready);
}

// Promises: LIFE-19
#[tokio::test(start_paused = true)]
async fn a_stop_lets_calls_in_flight_finish_and_takes_no_new_ones() {
    let script = FakeLauncher::new(FakeBehavior { gated: true, ..WELL_BEHAVED });
    let (_registry, plugin) = ready(&script).await;
    let running = in_flight(&plugin).await;
    let stop = tokio::spawn({
        let plugin = plugin.clone();
        async move { plugin.stop().await }
    });
    while plugin.snapshot().state != State::Draining {
        tokio::task::yield_now().await;
    }
    let refused = plugin.executor().execute(call("greet", None)).await.unwrap_err();
    assert!(matches!(refused, ExecuteError::Unavailable { retryable: false, .. }));
    script.gate.add_permits(1);
    assert_eq!(text(running.await.unwrap()), "0.1");
    stop.await.unwrap().unwrap();
    assert_eq!(*script.latest().received.lock(), ["Shutdown", "SIGKILL"], "what it left is killed");
    assert_eq!((plugin.snapshot().state, script.alive()), (State::Stopped, 0));
    assert_eq!(plugin.snapshot().deaths, 0);
}

// Promises: LIFE-20
#[tokio::test(start_paused = true)]
async fn a_plugin_that_heeds_nothing_is_gone_after_twice_the_grace_period() {
    let script = FakeLauncher::new(FakeBehavior {
        gated: true,
        accepts_shutdown: false,
        heeds_signals: false,
        ..WELL_BEHAVED
    });
    let (_registry, plugin) = ready(&script).await;
    let stuck = in_flight(&plugin).await;
    let began = Instant::now();
    plugin.stop().await.unwrap();
    assert!(matches!(stuck.await.unwrap(), Err(ExecuteError::Stopped)));
    assert_eq!(*script.latest().received.lock(), ["Shutdown", "SIGTERM", "SIGKILL"]);
    // It refused Shutdown, so SIGTERM came at once and had half of the second grace period.
    assert_eq!(began.elapsed().as_secs(), 15);
    assert_eq!(script.alive(), 0);
}

// Promises: LIFE-21
#[tokio::test(start_paused = true)]
async fn an_opentalon_plugin_is_asked_with_sigint() {
    let script = FakeLauncher::new(FakeBehavior { dialect: Dialect::OpenTalon, ..WELL_BEHAVED });
    let (_registry, plugin) = ready(&script).await;
    plugin.stop().await.unwrap();
    assert_eq!(*script.latest().received.lock(), ["SIGINT", "SIGKILL"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_it_starts_leaves_nothing() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    script.plan([LaunchPlan::Hangs]);
    let (_registry, plugin) = register(&script, spec("hello"));
    while plugin.snapshot().state != State::Handshaking {
        tokio::task::yield_now().await;
    }
    assert_eq!((plugin.snapshot().instances[0].pid, script.alive()), (Some(100), 1));
    plugin.stop().await.unwrap();
    assert_eq!((plugin.snapshot().instances[0].pid, script.alive()), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_stops_answering_health_checks_is_replaced() {
    let script = FakeLauncher::new(FakeBehavior { healthy: false, accepts_shutdown: false, ..WELL_BEHAVED });
    let (registry, plugin) = ready(&script).await;
    let mut events = registry_events(&registry);
    script.behavior.lock().healthy = true;
    plugin.wait_until(|view| view.generation == 2).await;
    plugin.settled().await;
    assert_eq!((plugin.snapshot().state, plugin.snapshot().instances[0].generation), (State::Ready, 2));
    let mut kinds = Vec::new();
    while let Ok(event) = events.try_recv() {
        kinds.push(event.kind.as_str());
    }
    assert_eq!(kinds.iter().filter(|kind| **kind == "health_failed").count(), 3);
    assert_eq!(kinds.iter().filter(|kind| **kind == "plugin_exited").count(), 1);
}

// Promises: LIFE-31
#[tokio::test(start_paused = true)]
async fn a_plugin_that_floods_its_connection_is_killed_and_charged() {
    let script = FakeLauncher::new(FakeBehavior { gated: true, ..WELL_BEHAVED });
    let (_registry, plugin) = ready(&script).await;
    let executor = plugin.executor();
    let call = tokio::spawn(async move { executor.execute(call("greet", Some(600 * SECOND))).await });
    while plugin.snapshot().calls_in_flight == 0 {
        tokio::task::yield_now().await;
    }
    script.processes.lock()[0].flood.send_replace(true);
    let error = call.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("killed, because it flooded its connection"), "{error}");
    plugin.wait_until(|view| view.generation == 2).await;
    plugin.settled().await;
    let view = plugin.snapshot();
    assert_eq!((view.state, view.instances[0].deaths), (State::Ready, 1));
    assert_eq!(view.restarts.get("frame_flood"), Some(&1));
    assert_eq!(script.alive(), 1);
}

// Promises: LIFE-15
#[tokio::test(start_paused = true)]
async fn a_busy_plugin_is_left_alone_until_the_deadline_of_its_call() {
    let script = FakeLauncher::new(FakeBehavior { healthy: false, gated: true, ..WELL_BEHAVED });
    let (_registry, plugin) = ready(&script).await;
    let executor = plugin.executor();
    let long = tokio::spawn(async move { executor.execute(call("greet", Some(600 * SECOND))).await });
    tokio::time::sleep(590 * SECOND).await;
    assert_eq!(plugin.snapshot().state, State::Ready);
    script.gate.add_permits(1);
    assert_eq!(text(long.await.unwrap()), "0.1");
    plugin.wait_until(|view| view.state == State::Unhealthy).await;
}

// Promises: LIFE-16
#[tokio::test(start_paused = true)]
async fn a_hung_plugin_is_found_out_though_calls_keep_coming() {
    let script = FakeLauncher::new(FakeBehavior { healthy: false, gated: true, ..WELL_BEHAVED });
    let (_registry, plugin) = ready(&script).await;
    let executor = plugin.executor();
    let callers = tokio::spawn(async move {
        loop {
            let _ = executor.execute(call("greet", Some(30 * SECOND))).await;
        }
    });
    let began = Instant::now();
    plugin.wait_until(|view| view.state == State::Draining).await;
    assert!(began.elapsed() < 120 * SECOND, "{:?}", began.elapsed());
    callers.abort();
}

// Promises: LIFE-18
#[tokio::test(start_paused = true)]
async fn a_call_waits_for_readiness_no_longer_than_ready_wait_and_its_deadline() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    script.plan([LaunchPlan::Hangs]);
    let (_registry, plugin) = register(&script, spec("hello"));
    let began = Instant::now();
    let late = plugin.executor().execute(call("greet", Some(2 * SECOND))).await.unwrap_err();
    assert!(matches!(late, ExecuteError::TimedOut { waited, .. } if waited == 2 * SECOND));
    let late = plugin.executor().execute(call("greet", Some(60 * SECOND))).await.unwrap_err();
    assert_eq!(began.elapsed(), 12 * SECOND);
    assert!(late.retryable());
    assert_eq!(late.to_string(), "the plugin is not available: not ready after 10 s: handshaking");
    assert_eq!(plugin.snapshot().calls_waiting, 0);
}

// Promises: LIFE-24
#[tokio::test(start_paused = true)]
async fn the_least_loaded_instance_gets_the_call() {
    let script = FakeLauncher::new(FakeBehavior { gated: true, ..WELL_BEHAVED });
    let (_registry, plugin) = register(&script, PluginSpec { instances: 3, ..spec("hello") });
    plugin.settled().await;
    let mut calls = Vec::new();
    for _ in 0..6 {
        calls.push(in_flight(&plugin).await);
    }
    let loads: Vec<_> = plugin.snapshot().instances.iter().map(|instance| instance.calls_in_flight).collect();
    assert_eq!(loads, [2, 2, 2]);
    script.gate.add_permits(6);
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(plugin.snapshot().calls_in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_is_counted_out() {
    let script = FakeLauncher::new(FakeBehavior { gated: true, ..WELL_BEHAVED });
    let (_registry, plugin) = ready(&script).await;
    let caller = in_flight(&plugin).await;
    caller.abort();
    let _ = caller.await;
    assert_eq!(plugin.snapshot().calls_in_flight, 0);
}

// Promises: LIFE-23
#[tokio::test(start_paused = true)]
async fn a_restart_replaces_one_instance_after_the_other() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let (_registry, plugin) = register(&script, PluginSpec { instances: 2, ..spec("hello") });
    plugin.settled().await;
    let executor = plugin.executor();
    let watcher = tokio::spawn({
        let plugin = plugin.clone();
        async move {
            let mut calls = 0;
            while plugin.snapshot().instances.iter().any(|instance| instance.generation == 1) {
                executor.execute(call("greet", None)).await.unwrap();
                assert_eq!(plugin.snapshot().state, State::Ready);
                calls += 1;
                tokio::task::yield_now().await;
            }
            calls
        }
    });
    plugin.restart().await.unwrap();
    assert!(watcher.await.unwrap() > 0);
    assert_eq!(script.launched(), 4);
    assert_eq!(plugin.snapshot().deaths, 0);
}

#[tokio::test(start_paused = true)]
async fn one_failed_instance_leaves_the_plugin_ready_and_says_so() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    script.plan([LaunchPlan::Refused]);
    let (_registry, plugin) = register(&script, PluginSpec { instances: 2, ..spec("hello") });
    plugin.settled().await;
    let snapshot = plugin.snapshot();
    assert_eq!(snapshot.state, State::Ready);
    assert!(snapshot.reason.unwrap().starts_with("instance 0 is refused: refused to start: no handshake"));
}

#[tokio::test(start_paused = true)]
async fn a_process_dies_with_the_last_handle_on_its_plugin() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let (registry, plugin) = ready(&script).await;
    drop((registry, plugin));
    while script.alive() > 0 {
        // The fake process counts as alive while its handle exists, which the driver alone still holds.
        script.processes.lock().clear();
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_restart_policy_one_death_is_final() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let lifecycle = LifecycleSettings { restart_on_failure: false, ..LifecycleSettings::default() };
    let (_registry, plugin) = register(&script, PluginSpec { lifecycle, ..spec("hello") });
    plugin.settled().await;
    script.latest().exit("exit code 1");
    plugin.wait_until(|view| view.state == State::Failed).await;
    assert_eq!(script.launched(), 1);
}

/// A plugin whose overdue calls are watched.
async fn watched(manners: FakeBehavior) -> (Arc<FakeLauncher>, Registry, Plugin) {
    let script = FakeLauncher::new(FakeBehavior { gated: true, ..manners });
    let lifecycle =
        LifecycleSettings { kill_overdue_after: Some(5 * SECOND), ..LifecycleSettings::default() };
    let (registry, plugin) = register(&script, PluginSpec { lifecycle, ..spec("hello") });
    plugin.settled().await;
    (script, registry, plugin)
}

const HEEDLESS: FakeBehavior = FakeBehavior { ends_overdue_after: None, ..WELL_BEHAVED };

fn named(id: &str, seconds: u32) -> ExecuteRequest {
    let mut request = call("greet", Some(seconds * SECOND));
    request.message.id = id.to_owned();
    request
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_ignores_a_deadline_is_killed_and_the_other_calls_die_with_it_at_once() {
    let (script, registry, plugin) = watched(HEEDLESS).await;
    let mut events = registry_events(&registry);
    let other = in_flight(&plugin).await;
    let (began, process) = (Instant::now(), script.latest());
    let late = plugin.executor().execute(named("c1", 2)).await.unwrap_err();
    assert!(matches!(late, ExecuteError::TimedOut { waited, .. } if waited == 2 * SECOND));
    assert_eq!(began.elapsed(), 2 * SECOND, "the caller is told at the deadline");
    assert_eq!((plugin.snapshot().state, script.streams()), (State::Ready, 2));

    let error = other.await.unwrap().unwrap_err();
    assert_eq!(began.elapsed(), 7 * SECOND);
    assert_eq!(
        error.to_string(),
        "the plugin died during the call (killed, because it ignored the deadline of another call)"
    );
    assert!(error.retryable());
    assert_eq!(*process.received.lock(), ["SIGKILL"], "it is asked for nothing more");
    assert_eq!(plugin.snapshot().deaths, 1);
    plugin.wait_until(|view| view.generation == 2 && view.state == State::Ready).await;
    let told = std::iter::from_fn(|| events.try_recv().ok());
    assert!(told.into_iter().any(|event| {
        event.kind.as_str() == "state_changed"
            && event
                .message
                .contains("ignored the deadline of call c1 (action greet) for 5 s; restart 1 of 3 follows")
    }));
    assert_eq!(script.streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_ends_an_overdue_call_in_time_lives_on() {
    let (script, _registry, plugin) =
        watched(FakeBehavior { ends_overdue_after: Some(4 * SECOND), ..WELL_BEHAVED }).await;
    for _ in 0..3 {
        plugin.executor().execute(named("c1", 2)).await.unwrap_err();
        assert!(script.streams() > 0, "the stream is left alone");
    }
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!((script.streams(), script.launched(), plugin.snapshot().deaths), (0, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn without_the_policy_an_overdue_call_is_cancelled_at_its_deadline_and_nobody_is_killed() {
    let script = FakeLauncher::new(FakeBehavior { gated: true, ..HEEDLESS });
    let (_registry, plugin) = ready(&script).await;
    plugin.executor().execute(named("c1", 2)).await.unwrap_err();
    assert_eq!(script.streams(), 0);
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!((script.launched(), plugin.snapshot().deaths), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_or_is_in_a_hurry_kills_nobody() {
    let (script, _registry, plugin) = watched(HEEDLESS).await;
    let caller = in_flight(&plugin).await;
    tokio::time::sleep(SECOND).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    assert_eq!(script.streams(), 0, "its call is cancelled at once");
    let hurried = ExecuteRequest { configured_timeout: None, ..named("c1", 1) };
    plugin.executor().execute(hurried).await.unwrap_err();
    assert_eq!(script.streams(), 0, "so is this one");
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!((script.launched(), plugin.snapshot().deaths), (1, 0));
}

// Promises: GUARD-67
#[tokio::test(start_paused = true)]
async fn what_a_call_waited_elsewhere_is_not_held_against_the_plugin() {
    let (script, _registry, plugin) =
        watched(FakeBehavior { ends_overdue_after: Some(30 * SECOND), ..WELL_BEHAVED }).await;
    // It has waited for 28 of its 30 seconds when it gets to the plugin.
    let waited = ExecuteRequest { configured_timeout: Some(30 * SECOND), ..named("c1", 2) };
    plugin.executor().execute(waited).await.unwrap_err();
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!((script.launched(), plugin.snapshot().deaths), (1, 0));
    script.behavior.lock().ends_overdue_after = None;
    plugin.restart().await.unwrap();
    let began = Instant::now();
    let waited = ExecuteRequest { configured_timeout: Some(30 * SECOND), ..named("c1", 2) };
    plugin.executor().execute(waited).await.unwrap_err();
    plugin.wait_until(|view| view.deaths == 1).await;
    assert_eq!(began.elapsed(), 35 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_gives_a_call_up_at_its_deadline_is_no_caller_that_went_away() {
    let (script, _registry, plugin) = watched(HEEDLESS).await;
    let request = named("c1", 2);
    // The guard's own timer may be seen first, and then it drops the call.
    let mut call = {
        let executor = plugin.executor();
        Box::pin(async move { executor.execute(request).await })
    };
    assert!(futures_util::poll!(&mut call).is_pending());
    tokio::time::advance(2 * SECOND).await;
    drop(call);
    plugin.wait_until(|view| view.generation == 2).await;
    assert_eq!(script.launched(), 2);
}

// Promises: GUARD-68
#[tokio::test(start_paused = true)]
async fn only_so_many_overdue_calls_are_watched_and_the_others_are_cancelled() {
    let (script, _registry, plugin) =
        watched(FakeBehavior { ends_overdue_after: Some(SECOND), ..WELL_BEHAVED }).await;
    let calls: Vec<_> = (0..3 * MAX_WATCHED)
        .map(|_| {
            let executor = plugin.executor();
            tokio::spawn(async move { executor.execute(named("c1", 2)).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap().unwrap_err();
    }
    // The driver takes some out of its queue meanwhile: as many are watched as there is room, and as many may
    // wait.
    assert!((1..=2 * MAX_WATCHED).contains(&script.streams()), "{}", script.streams());
    tokio::task::yield_now().await;
    assert!(script.streams() <= MAX_WATCHED, "{}", script.streams());
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!((script.streams(), plugin.snapshot().deaths), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_goes_anyway_is_not_killed_for_a_call_that_it_ignored() {
    let (script, _registry, plugin) = watched(HEEDLESS).await;
    plugin.executor().execute(named("c1", 2)).await.unwrap_err();
    script.latest().exit("exit code 3");
    plugin.wait_until(|view| view.generation == 2 && view.state == State::Ready).await;
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!((script.launched(), plugin.snapshot().deaths), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_ignores_every_deadline_is_failed_in_the_end() {
    let (script, _registry, plugin) = watched(HEEDLESS).await;
    for deaths in 1..=4 {
        plugin.settled().await;
        plugin.executor().execute(named("c1", 1)).await.unwrap_err();
        plugin.wait_until(|view| view.deaths == deaths).await;
    }
    plugin.settled().await;
    assert_eq!((plugin.snapshot().state, script.launched()), (State::Failed, 4));
}

// Promises: GUARD-64
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_there_only_after_the_deadline_is_not_delivered() {
    let script = FakeLauncher::new(FakeBehavior { gated: true, ..WELL_BEHAVED });
    let (_registry, plugin) = ready(&script).await;
    let mut call = {
        let executor = plugin.executor();
        Box::pin(async move { executor.execute(named("c1", 2)).await })
    };
    assert!(futures_util::poll!(&mut call).is_pending());
    // Nothing is polled for a while; then both the answer and the deadline are due.
    script.gate.add_permits(1);
    tokio::time::advance(3 * SECOND).await;
    assert!(matches!(call.await, Err(ExecuteError::TimedOut { .. })));
}

fn registry_events(registry: &Registry) -> tokio::sync::broadcast::Receiver<Arc<crate::Event>> {
    registry.events().subscribe()
}
