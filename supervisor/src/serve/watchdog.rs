//! Feeds the service manager's watchdog as long as everything essential answers: the driver task of every
//! instance, and the accept loop. It does not use an independent timer: the feeding task runs on the same
//! event loop, and does not feed if a part does not answer.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use talon_plugin::{Plugin, Registry};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;

use crate::host::LivenessProbe;
use crate::notify::Manager;

/// How often it feeds within the watchdog interval. Two of three may come too late: a busy machine is not a
/// stuck supervisor.
const FEEDS_PER_INTERVAL: u32 = 3;
/// The name of the accept loop in the log.
const LISTENER: &str = "host.sock";
/// Maximum number of unresponsive parts that a log line names.
const MAX_NAMED: usize = 8;

/// Feeds it until the handle is dropped; `None` without a watchdog. `host` is the probe of the accept loop,
/// while the server should accept connections.
pub(super) fn feed(
    manager: &Manager,
    registry: &Registry,
    mut host: watch::Receiver<Option<LivenessProbe>>,
) -> Option<AbortOnDropHandle<()>> {
    let every = manager.watchdog()? / FEEDS_PER_INTERVAL;
    let (manager, registry) = (manager.clone(), registry.clone());
    Some(AbortOnDropHandle::new(tokio::spawn(async move {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silent_before = BTreeSet::new();
        loop {
            ticks.tick().await;
            let silent = unresponsive(&registry, &mut host, every).await;
            report(&silent, &silent_before);
            if silent.is_empty() {
                manager.feed_watchdog();
                metrics::counter!("talon_watchdog_pings_total").increment(1);
            } else {
                metrics::counter!("talon_watchdog_withheld_total").increment(1);
            }
            silent_before = silent;
        }
    })))
}

/// The parts that do not answer within this time.
async fn unresponsive(
    registry: &Registry,
    host: &mut watch::Receiver<Option<LivenessProbe>>,
    within: Duration,
) -> BTreeSet<String> {
    let pulse = host.borrow_and_update().clone();
    let listener = async {
        match &pulse {
            Some(pulse) => pulse.answers(within).await,
            None => true,
        }
    };
    let plugins = registry.list();
    let drivers = join_all(plugins.iter().map(async |plugin| {
        let silent = plugin.unresponsive_instances(within).await;
        // A driver of a deregistered plugin does not answer, and is no longer listed.
        let there = !silent.is_empty() && registry.get(plugin.name().as_str()).is_some();
        silent.into_iter().filter(move |_| there).map(|instance| driver(plugin, instance)).collect::<Vec<_>>()
    }));
    let (listens, drivers) = tokio::join!(listener, drivers);
    // A server that was closed meanwhile need not answer.
    let closed = host.has_changed().unwrap_or(true);
    let listener = (!listens && !closed).then(|| LISTENER.to_owned());
    drivers.into_iter().flatten().chain(listener).collect()
}

fn driver(plugin: &Plugin, instance: u32) -> String {
    format!("the driver of {} (instance {instance})", plugin.name())
}

fn report(silent: &BTreeSet<String>, before: &BTreeSet<String>) {
    let news: Vec<&str> = silent.difference(before).map(String::as_str).take(MAX_NAMED).collect();
    if !news.is_empty() {
        let count = silent.len();
        tracing::error!(count, "the watchdog is not fed: no answer from {}", news.join(", "));
    }
    if silent.is_empty() && !before.is_empty() {
        tracing::info!("everything answers again; the watchdog is fed");
    }
}
