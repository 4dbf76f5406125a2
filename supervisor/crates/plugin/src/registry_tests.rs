//! The registry over a scripted launcher.

use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::driver::fake_launcher::{
    FakeBehavior, FakeLauncher, LaunchPlan, WELL_BEHAVED, call, registry, spec,
};
use crate::lifecycle::State;
use crate::plugin::OperateError;

// Promises: REG-1
#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_refused_and_the_first_stays() {
    let registry = registry(&FakeLauncher::new(WELL_BEHAVED));
    let first = registry.register(spec("hello")).unwrap();
    let second = PluginSpec { source: "/plugins/hello.py".to_owned(), ..spec("hello") };
    assert_eq!(
        registry.register(second).unwrap_err().to_string(),
        "there is a plugin named hello already, from test hello: rename or remove one of the two (/plugins/hello.py)"
    );
    first.settled().await;
    assert_eq!(registry.list().len(), 1);
}

// Promises: REG-9
#[tokio::test(start_paused = true)]
async fn impossible_numbers_of_instances_are_refused() {
    let registry = registry(&FakeLauncher::new(WELL_BEHAVED));
    for instances in [0, MAX_INSTANCES + 1, u32::MAX] {
        let error = registry.register(PluginSpec { instances, ..spec("hello") }).unwrap_err();
        assert!(matches!(error, RegisterError::Instances { .. }), "{error}");
    }
}

// Promises: HANDOVER-38
#[tokio::test(start_paused = true)]
async fn drivers_answer_unless_they_hold_still_and_then_restart_nothing() {
    const SOON: Duration = Duration::from_millis(50);
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    let plugin = registry.register(PluginSpec { instances: 2, ..spec("hello") }).unwrap();
    plugin.settled().await;
    assert!(plugin.unresponsive_instances(SOON).await.is_empty());

    registry.pause();
    // What comes together with the pause may still be dealt with.
    let _ = plugin.unresponsive_instances(SOON).await;
    assert_eq!(plugin.unresponsive_instances(SOON).await, [0, 1]);
    let stopping = tokio::spawn({
        let plugin = plugin.clone();
        async move { plugin.stop().await }
    });
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(plugin.snapshot().state, State::Ready, "what it is told waits");
    registry.resume();
    stopping.await.unwrap().unwrap();
    assert!(plugin.unresponsive_instances(SOON).await.is_empty());

    // A shutdown ends it even while it is paused.
    registry.pause();
    registry.shutdown(Duration::from_millis(10)).await;
    assert!(registry.list().is_empty());
}

// Promises: REG-2
#[tokio::test(start_paused = true)]
async fn what_it_knows_follows_what_plugins_declare() {
    let registry = registry(&FakeLauncher::new(WELL_BEHAVED));
    let mut changes = registry.subscribe_changes();
    assert!(registry.get_capability("hello").is_none() && !registry.has_action("hello", "greet"));
    let plugin = registry.register(spec("hello")).unwrap();
    plugin.settled().await;
    assert!(registry.has_action("hello", "greet"));
    assert!(!registry.has_action("hello", "refreshed") && !registry.has_action("other", "greet"));
    changes.borrow_and_update();
    assert!(plugin.refresh_capabilities().await.unwrap());
    assert!(changes.has_changed().unwrap() && registry.has_action("hello", "refreshed"));
    assert_eq!(registry.list_capabilities().len(), 1);

    // What was known stays known while it is stopped; only its name leads to it.
    plugin.stop().await.unwrap();
    assert!(registry.has_action("hello", "greet"));
    assert!(matches!(
        plugin.refresh_capabilities().await,
        Err(OperateError::NotReady { state: State::Stopped, .. })
    ));
    assert!(registry.deregister(plugin.name()).await);
    assert!(!registry.has_action("hello", "greet") && registry.get_executor("hello").is_none());
}

// Promises: REG-8
#[tokio::test(start_paused = true)]
async fn a_plugin_that_calls_itself_by_anothers_name_gets_none_of_its_calls() {
    let registry = registry(&FakeLauncher::new(WELL_BEHAVED));
    let hello = registry.register(spec("hello")).unwrap();
    hello.settled().await;
    let evil = registry.register(spec("evil")).unwrap();
    evil.settled().await;
    assert_eq!(evil.capability().unwrap().declared_name.as_str(), "hello");
    assert_eq!(evil.snapshot().notes.len(), 1);
    assert_eq!(registry.get("hello").unwrap().snapshot().notes, Vec::<String>::new());
    assert_eq!(registry.get_executor("hello").unwrap().pool.name.as_str(), "hello");
}

// Promises: REG-4
#[tokio::test(start_paused = true)]
async fn deregister_stops_the_plugin_and_frees_its_name() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    let plugin = registry.register(spec("hello")).unwrap();
    plugin.settled().await;
    assert!(registry.deregister(plugin.name()).await);
    assert_eq!(script.alive(), 0);
    assert!(!registry.deregister(plugin.name()).await);
    assert!(matches!(plugin.start().await, Err(OperateError::Removed { .. })));
    let gone = plugin.executor().execute(call("greet", None)).await.unwrap_err();
    assert!(!gone.retryable(), "{gone}");
    registry.register(spec("hello")).unwrap().settled().await;
    assert_eq!(script.alive(), 1);
}

// Promises: LIFE-28
#[tokio::test(start_paused = true)]
async fn shutdown_drains_all_at_once_and_leaves_nothing() {
    let script =
        FakeLauncher::new(FakeBehavior { accepts_shutdown: false, heeds_signals: false, ..WELL_BEHAVED });
    let registry = registry(&script);
    for index in 0..20 {
        registry.register(PluginSpec { instances: 2, ..spec(&format!("p{index}")) }).unwrap().settled().await;
    }
    script.plan([LaunchPlan::Hangs]);
    let starting = registry.register(spec("starting")).unwrap();
    assert_eq!(script.launched(), 40);
    let began = Instant::now();
    registry.shutdown(Duration::from_secs(2)).await;
    // All are idle and heed nothing: half a grace period for SIGTERM, then SIGKILL, for all at the same time.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!((script.alive(), registry.list().len()), (0, 0));
    assert!(matches!(starting.start().await, Err(OperateError::Removed { .. })));
    assert!(matches!(registry.register(spec("late")), Err(RegisterError::ShuttingDown { .. })));
}

// Promises: REG-5
#[tokio::test(start_paused = true)]
async fn nobody_starts_a_plugin_that_is_being_removed() {
    let script =
        FakeLauncher::new(FakeBehavior { accepts_shutdown: false, heeds_signals: false, ..WELL_BEHAVED });
    let registry = registry(&script);
    let plugin = registry.register(spec("hello")).unwrap();
    plugin.settled().await;
    let (removed, started) = tokio::join!(registry.deregister(plugin.name()), async {
        plugin.wait_until(|view| view.state == State::Draining).await;
        plugin.start().await
    });
    assert!(removed && matches!(started, Err(OperateError::Removed { .. })));
    assert_eq!(script.alive(), 0);
}

// Promises: REG-3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_safe_under_concurrency() {
    let script = FakeLauncher::new(WELL_BEHAVED);
    let registry = registry(&script);
    let workers = (0..8).map(|worker: usize| {
        let registry = registry.clone();
        tokio::spawn(async move {
            for round in 0..30 {
                let name = format!("p{}", (worker + round) % 4);
                match round % 3 {
                    0 => drop(registry.register(spec(&name))),
                    1 => {
                        let executor = registry.get_executor(&name);
                        if let Some(executor) = executor {
                            // It may be stopped at any moment: an answer or a clear error, never a hang.
                            let _ = executor.execute(call("greet", Some(Duration::from_secs(20)))).await;
                        }
                    }
                    _ => drop(registry.deregister(&PluginName::new(&name).unwrap()).await),
                }
                let _ = (registry.list(), registry.list_capabilities(), registry.has_action(&name, "greet"));
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    registry.shutdown(Duration::from_secs(1)).await;
    script.processes.lock().clear();
    assert_eq!(script.alive(), 0);
}
