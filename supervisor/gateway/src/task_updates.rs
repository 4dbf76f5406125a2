//! Runs of scheduled jobs, and tasks of sub-agents that failed, as the agent's event bus tells of them, for clients that operate. Nothing of
//! it is kept: `GET /api/schedule/history` has what was.

use std::time::Duration;

use futures_util::{Stream, stream};
use talon_event_bus::{Delivery, EventBus, EventKind, Payload, Subject, Subscription};
use talon_proto::agent::watch_bus_response::Item;
use talon_proto::agent::{BusEvent, WatchBusRequest};

use crate::backends::Backends;
use crate::events::task::TaskEvent;
use crate::events::{Envelope, ServerEvent};
use crate::identity::{Caller, Scope};

/// What the agent is asked for.
const KINDS: &str = "task.*";
/// The wait before the agent is asked again: it is started again, or lets the gateway do too little.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Who tells of tasks, and whom connections ask: one stream of the agent's for all of them. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskUpdates(EventBus);

impl TaskUpdates {
    /// What happens from now on, for a caller that operates; `None` for others.
    pub(crate) fn subscribe(&self, caller: &Caller) -> Option<Subscription> {
        if !caller.scopes.contain(Scope::Operate) || caller.session.is_some() {
            return None;
        }
        let kinds =
            [EventKind::TaskStarted, EventKind::TaskCompleted, EventKind::TaskFailed, EventKind::TaskRetried];
        let subscription = self.0.subscribe(kinds);
        subscription.inspect_err(|error| tracing::warn!(%error, "a connection hears of no tasks")).ok()
    }
}

/// The events of a subscription; none without one. It goes on as long as it is polled.
pub(crate) fn events(subscription: Option<Subscription>) -> impl Stream<Item = Envelope> + Send {
    stream::unfold(subscription, |subscription| async move {
        let mut subscription = subscription?;
        loop {
            match subscription.next().await? {
                Delivery::Event(event) => {
                    if let Some(envelope) = envelope(&event) {
                        return Some((envelope, Some(subscription)));
                    }
                }
                // What a client has to know is in the history.
                Delivery::Missed(_) => {}
            }
        }
    })
}

/// Follows the agent's bus for as long as it is polled. `may_watch`: whether the gateway's role suffices for that now.
pub(crate) async fn follow(backends: Backends, updates: TaskUpdates, may_watch: impl Fn() -> bool) {
    let caller = Caller { scopes: [Scope::Operate].into_iter().collect(), ..Caller::gateway() };
    loop {
        // A gateway that may do no more than its callers' calls has no client that operates.
        if may_watch() {
            let request = WatchBusRequest { kinds: vec![KINDS.to_owned()], everybody: true };
            if let Ok(items) = backends.agent(&caller).watch_bus(request).await {
                let mut items = items.into_inner();
                while let Ok(Some(item)) = items.message().await {
                    if let Some(Item::Event(BusEvent {
                        sender, session_id, payload: Some(payload), ..
                    })) = item.item
                    {
                        updates.0.emit(Subject { sender: &sender, session: &session_id }, payload);
                    }
                }
            }
        }
        tokio::time::sleep(ASK_AGAIN_AFTER).await;
    }
}

fn envelope(event: &BusEvent) -> Option<Envelope> {
    let of = |update| TaskEvent::of(update, event);
    let told = match event.payload.as_ref()? {
        Payload::TaskStarted(update) => ServerEvent::TaskStarted(of(update)),
        Payload::TaskCompleted(update) => ServerEvent::TaskCompleted(of(update)),
        Payload::TaskFailed(update) => ServerEvent::TaskFailed(of(update)),
        Payload::TaskRetried(update) => ServerEvent::TaskRetried(of(update)),
        _ => return None,
    };
    Some(Envelope::now(told, event.unix_ms))
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use talon_proto::agent::TaskUpdate;

    use super::*;

    // Promises: GW-260
    #[tokio::test]
    async fn who_operates_hears_of_tasks_and_nobody_else() {
        let updates = TaskUpdates::default();
        let caller = |scope| Caller { scopes: [scope].into_iter().collect(), ..Caller::gateway() };
        for scope in [Scope::Chat, Scope::Approve, Scope::Channel] {
            assert!(updates.subscribe(&caller(scope)).is_none());
        }
        let of_one = Caller { session: Some("01A".into()), ..caller(Scope::Operate) };
        assert!(updates.subscribe(&of_one).is_none());
        let mut told = Box::pin(events(updates.subscribe(&caller(Scope::Operate))));
        let update = TaskUpdate { job: "digest".to_owned(), attempt: 2, ..TaskUpdate::default() };
        updates.0.emit(Subject { sender: "ada", session: "01A" }, Payload::TaskRetried(update));
        let envelope = told.next().await.expect("an event");
        let ServerEvent::TaskRetried(task) = envelope.event else { panic!("{envelope:?}") };
        assert_eq!((task.job.as_deref(), task.attempt, task.subagent), (Some("digest"), 2, None));
        assert_eq!((task.session_id.as_deref(), task.sender_id.as_deref()), (Some("sess_01A"), Some("ada")));
    }
}
