//! Passes on what the supervisor says of plugins, of the guard and of its configuration.
//!
//! Events of single calls are not asked for: those of turns are emitted here, and the others are the supervisor's own.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use talon_event_bus::{EventBus, EventKind, Payload, Subject};
use talon_proto::agent::{ConfigChanged, GuardUpdate, PluginUpdate};
use talon_proto::host::Event;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// The wait between two streams: the supervisor is being replaced, or refuses for a reason that lasts.
const RECONNECT_WAIT: Duration = Duration::from_secs(5);
/// The field that says how many events are missing in the stream.
const MISSED: &str = "missed";
/// The kinds that are passed on.
const RELAYED: [EventKind; 11] = [
    EventKind::PluginReady,
    EventKind::PluginFailed,
    EventKind::PluginRestarting,
    EventKind::PluginStopped,
    EventKind::PluginExited,
    EventKind::PluginChanged,
    EventKind::PluginReplaced,
    EventKind::PluginEvent,
    EventKind::GuardQuarantined,
    EventKind::GuardDeclarationChanged,
    EventKind::ConfigChanged,
];

/// Where the supervisor's events come from.
#[async_trait]
pub(crate) trait HostFeed: Send + Sync {
    /// Its events from now on, without those of single calls.
    ///
    /// # Errors
    /// The supervisor's answer.
    async fn events(&self) -> Result<BoxStream<'static, Result<Event, Status>>, Status>;
}

/// Passes events on until `ending`. Calls `connected` with each new stream. What happened between two, or before the first one if the first
/// attempt failed, is not told; whoever wants such events gets a missing one for it.
pub(crate) async fn relay_host(
    bus: EventBus,
    feed: Arc<dyn HostFeed>,
    connected: impl Fn() + Send + Sync,
    ending: CancellationToken,
) {
    let (mut is_first, mut is_refused) = (true, false);
    loop {
        let followed = async {
            let was_first = std::mem::take(&mut is_first);
            match feed.events().await {
                Ok(events) => {
                    if !was_first {
                        bus.note_missed(RELAYED, 1);
                    }
                    is_refused = false;
                    connected();
                    relay_stream(&bus, events).await;
                }
                // Once: it is tried again every few seconds.
                Err(status) if !is_refused => {
                    is_refused = true;
                    tracing::info!(
                        status = status.message(),
                        "the supervisor's events cannot be read, and are tried again"
                    );
                }
                Err(_) => {}
            }
            sleep(RECONNECT_WAIT).await;
        };
        tokio::select! {
            () = ending.cancelled() => return,
            () = followed => {}
        }
    }
}

/// Passes on what a stream has, to its end.
async fn relay_stream(bus: &EventBus, mut events: BoxStream<'static, Result<Event, Status>>) {
    loop {
        match events.next().await {
            Some(Ok(event)) => {
                if let Some(missed) = event.fields.get(MISSED) {
                    tracing::warn!(
                        missed,
                        "the supervisor's events came faster than the event bus took them"
                    );
                    // One at the least, whatever it says.
                    bus.note_missed(RELAYED, missed.parse().unwrap_or(1));
                }
                if let Some(payload) = payload(event) {
                    bus.emit(Subject::NOBODY, payload);
                }
            }
            Some(Err(status)) => {
                return tracing::info!(
                    status = status.message(),
                    "the stream of the supervisor's events ended"
                );
            }
            None => return,
        }
    }
}

/// An event of the supervisor as one of the bus; `None` for what it does not carry.
fn payload(event: Event) -> Option<Payload> {
    let field = |name: &str| event.fields.get(name).cloned().unwrap_or_default();
    Some(match event.kind.as_str() {
        "state_changed" => match field("to").as_str() {
            "ready" => Payload::PluginReady(plugin(event)),
            "failed" => Payload::PluginFailed(plugin(event)),
            "backoff" => Payload::PluginRestarting(plugin(event)),
            "stopped" => Payload::PluginStopped(plugin(event)),
            _ => return None,
        },
        "refused" => Payload::PluginFailed(plugin(event)),
        "plugin_exited" => Payload::PluginExited(plugin(event)),
        "capabilities_changed" | "lists_changed" | "script_loaded" | "script_refused" | "script_removed" => {
            Payload::PluginChanged(plugin(event))
        }
        "plugin_replaced" | "replacement_failed" => Payload::PluginReplaced(plugin(event)),
        "source_event" => Payload::PluginEvent(plugin(event)),
        "quarantined" => Payload::GuardQuarantined(guard("quarantine", field("reason"), event)),
        "tools_changed" => Payload::GuardDeclarationChanged(guard("resolve", field("what"), event)),
        "config_reloaded" => {
            let keys = |name| {
                let text = field(name);
                text.split(", ").filter(|key| !key.is_empty()).map(str::to_owned).collect()
            };
            Payload::ConfigChanged(ConfigChanged {
                keys: keys("changed"),
                needs_restart: keys("needs_restart"),
            })
        }
        _ => return None,
    })
}

fn plugin(event: Event) -> PluginUpdate {
    let Event { plugin, instance, message, fields, .. } = event;
    PluginUpdate { plugin, instance, message, fields }
}

fn guard(layer: &str, reason: String, event: Event) -> GuardUpdate {
    let action = event.fields.get("action").cloned().unwrap_or_default();
    let reason = if reason.is_empty() { event.message } else { reason };
    GuardUpdate { plugin: event.plugin, action, layer: layer.to_owned(), reason, ..GuardUpdate::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::stream;
    use talon_event_bus::{Delivery, KindSet};

    use super::*;

    struct Feed;

    #[async_trait]
    impl HostFeed for Feed {
        async fn events(&self) -> Result<BoxStream<'static, Result<Event, Status>>, Status> {
            let event = |kind: &str, fields: &[(&str, &str)]| Event {
                kind: kind.to_owned(),
                plugin: "mail".to_owned(),
                message: "a sentence".to_owned(),
                fields: fields.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
                ..Event::default()
            };
            let told = [
                event("state_changed", &[("from", "starting"), ("to", "ready")]),
                event("state_changed", &[("from", "ready"), ("to", "draining")]),
                event("state_changed", &[("from", "backoff"), ("to", "failed")]),
                event("health_failed", &[]),
                event("quarantined", &[("reason", "marks")]),
                event("tools_changed", &[("action", "send"), ("what", "description")]),
                event("config_reloaded", &[("changed", "log.level, agent.name"), ("needs_restart", "")]),
            ];
            Ok(stream::iter(told.map(Ok)).chain(stream::pending()).boxed())
        }
    }

    /// One event and an error, and then, without an end, one that says how many are missing.
    struct BrokenFeed(AtomicBool);

    #[async_trait]
    impl HostFeed for BrokenFeed {
        async fn events(&self) -> Result<BoxStream<'static, Result<Event, Status>>, Status> {
            let exited = Event { kind: "plugin_exited".to_owned(), ..Event::default() };
            if !self.0.swap(true, Ordering::Relaxed) {
                return Ok(stream::iter([Ok(exited), Err(Status::unavailable("it is replaced"))]).boxed());
            }
            let fields = [(MISSED.to_owned(), "3".to_owned())].into();
            let missed = Event { kind: "supervisor".to_owned(), fields, ..Event::default() };
            Ok(stream::iter([Ok(exited.clone()), Ok(missed), Ok(exited)]).chain(stream::pending()).boxed())
        }
    }

    // Promises: GW-154
    #[tokio::test(start_paused = true)]
    async fn what_the_supervisor_did_not_tell_is_missing_for_who_wants_such_events() {
        let (bus, ending) = (EventBus::default(), CancellationToken::new());
        let mut watch = bus.subscribe(EventKind::PluginExited).expect("room");
        let mut other = bus.subscribe(EventKind::AgentThinking).expect("room");
        let feed = Arc::new(BrokenFeed(AtomicBool::new(false)));
        let relay = tokio::spawn(relay_host(bus.clone(), feed, || {}, ending.clone()));
        let mut told = Vec::new();
        while told.len() < 5 {
            told.push(match watch.next().await.expect("it goes on") {
                Delivery::Event(_) => 0,
                Delivery::Missed(missed) => missed,
            });
        }
        assert_eq!(told, [0, 1, 0, 3, 0]);
        assert_eq!(other.try_next(), None);
        ending.cancel();
        relay.await.expect("it ends with the agent");
    }

    /// It is refused, and then has one event.
    struct LateFeed(AtomicBool);

    #[async_trait]
    impl HostFeed for LateFeed {
        async fn events(&self) -> Result<BoxStream<'static, Result<Event, Status>>, Status> {
            if !self.0.swap(true, Ordering::Relaxed) {
                return Err(Status::unavailable("it starts"));
            }
            let exited = Event { kind: "plugin_exited".to_owned(), ..Event::default() };
            Ok(stream::iter([Ok(exited)]).chain(stream::pending()).boxed())
        }
    }

    // Promises: GW-154
    #[tokio::test(start_paused = true)]
    async fn what_happened_before_the_first_stream_is_missing_if_that_was_refused_at_first() {
        let (bus, ending) = (EventBus::default(), CancellationToken::new());
        let mut watch = bus.subscribe(EventKind::PluginExited).expect("room");
        let feed = Arc::new(LateFeed(AtomicBool::new(false)));
        let relay = tokio::spawn(relay_host(bus.clone(), feed, || {}, ending.clone()));
        assert!(matches!(watch.next().await, Some(Delivery::Missed(1))));
        assert!(matches!(watch.next().await, Some(Delivery::Event(_))));
        ending.cancel();
        relay.await.expect("it ends with the agent");
    }

    // Promises: GW-153
    #[tokio::test]
    async fn what_the_supervisor_says_of_plugins_guard_and_configuration_is_passed_on() {
        let (bus, ending) = (EventBus::default(), CancellationToken::new());
        let mut watch = bus.subscribe(KindSet::all()).expect("room");
        let relay = tokio::spawn(relay_host(bus.clone(), Arc::new(Feed), || {}, ending.clone()));
        let mut told = Vec::new();
        while told.len() < 5 {
            let Some(Delivery::Event(event)) = watch.next().await else { panic!("an event") };
            assert!(event.sender.is_empty(), "it is nobody's");
            told.push(event.payload.clone().expect("each event has one"));
        }
        let kinds: Vec<EventKind> = told.iter().map(EventKind::of).collect();
        assert_eq!(
            kinds,
            [
                EventKind::PluginReady,
                EventKind::PluginFailed,
                EventKind::GuardQuarantined,
                EventKind::GuardDeclarationChanged,
                EventKind::ConfigChanged,
            ]
        );
        let Payload::GuardQuarantined(guard) = &told[2] else { panic!("{told:?}") };
        assert_eq!((guard.plugin.as_str(), guard.reason.as_str()), ("mail", "marks"));
        let Payload::ConfigChanged(config) = &told[4] else { panic!("{told:?}") };
        assert_eq!(config.keys, ["log.level", "agent.name"]);
        assert!(config.needs_restart.is_empty());
        ending.cancel();
        relay.await.expect("it ends with the agent");
    }
}
