//! Changes of the configuration, as the supervisor tells of them, for clients that may read it.

use std::time::Duration;

use futures_util::{Stream, stream};
use talon_event_bus::{Delivery, EventBus, EventKind, Payload, Subject, Subscription};
use talon_proto::agent::ConfigChanged;
use talon_proto::host::{Event, WatchEventsRequest};

use crate::backends::Backends;
use crate::events::session::ConfigUpdated;
use crate::events::{Envelope, ServerEvent};
use crate::identity::{Caller, Scope};

/// What the supervisor calls a change that is in force.
const CHANGED: &str = "config_reloaded";
/// The wait before the supervisor is asked again: it is being replaced, or lets the gateway do too little.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Who tells of changes, and whom connections ask. Cheap to clone. It is a bus of this process: an agent that restarts takes no change with
/// it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigUpdates(EventBus);

impl ConfigUpdates {
    /// The changes from now on, for a caller that may read the configuration; `None` for others.
    pub(crate) fn subscribe(&self, caller: &Caller) -> Option<Subscription> {
        if !caller.scopes.contain(Scope::Admin) {
            return None;
        }
        let subscription = self.0.subscribe(EventKind::ConfigChanged);
        subscription
            .inspect_err(|error| {
                tracing::warn!(%error, "a connection hears of no changes of the configuration");
            })
            .ok()
    }
}

/// The changes of a subscription; none without one. It goes on as long as it is polled.
pub(crate) fn events(subscription: Option<Subscription>) -> impl Stream<Item = Envelope> + Send {
    stream::unfold(subscription, |subscription| async move {
        let mut subscription = subscription?;
        loop {
            match subscription.next().await? {
                Delivery::Event(event) => {
                    if let Some(Payload::ConfigChanged(changed)) = &event.payload {
                        let told = ServerEvent::ConfigUpdated(updated(changed));
                        return Some((Envelope::now(told, event.unix_ms), Some(subscription)));
                    }
                }
                // A client reads the configuration, not its changes.
                Delivery::Missed(_) => {}
            }
        }
    })
}

/// Follows the supervisor's events for as long as it is polled. `may_watch`: whether the gateway's role suffices for that now.
pub(crate) async fn follow(backends: Backends, updates: ConfigUpdates, may_watch: impl Fn() -> bool) {
    let caller = Caller { scopes: [Scope::Operate].into_iter().collect(), ..Caller::gateway() };
    loop {
        // A gateway that may do no more than its callers' calls has no client that reads the configuration.
        if may_watch() {
            let request = WatchEventsRequest { plugin: String::new(), without_calls: true };
            if let Ok(events) = backends.host(&caller).watch_events(request).await {
                let mut events = events.into_inner();
                while let Ok(Some(event)) = events.message().await {
                    if event.kind == CHANGED {
                        updates.0.emit(Subject::NOBODY, Payload::ConfigChanged(change(&event)));
                    }
                }
            }
        }
        tokio::time::sleep(ASK_AGAIN_AFTER).await;
    }
}

fn change(event: &Event) -> ConfigChanged {
    let keys = |field: &str| -> Vec<String> {
        let text = event.fields.get(field).map(String::as_str).unwrap_or_default();
        text.split(", ").filter(|key| !key.is_empty()).map(str::to_owned).collect()
    };
    ConfigChanged { keys: keys("changed"), needs_restart: keys("needs_restart") }
}

fn updated(changed: &ConfigChanged) -> ConfigUpdated {
    let ConfigChanged { keys, needs_restart } = changed;
    ConfigUpdated { keys: [&keys[..], needs_restart].concat(), needs_restart: needs_restart.clone() }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;

    // Promises: GW-128
    #[tokio::test]
    async fn who_may_read_the_configuration_hears_of_changes_and_nobody_else() {
        let fields = [("changed", "log.level, agent.turn.iterations"), ("needs_restart", "agent.enabled")];
        let fields = fields.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let event = Event { kind: CHANGED.to_owned(), fields: fields.into(), ..Event::default() };
        let changed = change(&event);
        let told = updated(&changed);
        assert_eq!(told.keys, ["log.level", "agent.turn.iterations", "agent.enabled"]);
        assert_eq!(told.needs_restart, ["agent.enabled"]);
        let updates = ConfigUpdates::default();
        let caller = |scope| Caller { scopes: [scope].into_iter().collect(), ..Caller::gateway() };
        for scope in [Scope::Chat, Scope::Operate, Scope::Channel] {
            assert!(updates.subscribe(&caller(scope)).is_none());
        }
        let mut admin = Box::pin(events(updates.subscribe(&caller(Scope::Admin))));
        updates.0.emit(Subject::NOBODY, Payload::ConfigChanged(changed));
        let envelope = admin.next().await.expect("an event");
        assert_eq!((envelope.event, envelope.sequence), (ServerEvent::ConfigUpdated(told), None));
        assert!(events(None).boxed().next().await.is_none(), "others have none");
    }
}
