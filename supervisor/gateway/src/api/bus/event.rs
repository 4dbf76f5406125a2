//! The events of the bus.

use serde::Serialize;
use talon_event_bus::EventKind;
use talon_proto::agent;
use talon_proto::agent::bus_event::Payload;
use utoipa::ToSchema;

use super::payload::{
    BusApproval, BusConfig, BusGuard, BusMessageIn, BusMessageOut, BusNotification, BusPlugin, BusSession,
    BusSessionIdle, BusTask, BusThinking, BusToolComplete, BusToolExecute,
};
use crate::events::ids::session_id;
use crate::events::session::{ShadowEvent, ShadowGhost};

/// An event of the bus.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BusEnvelope {
    /// Its type, with its payload.
    #[serde(flatten)]
    pub(super) event: BusEvent,
    /// When it happened, in milliseconds since 1970.
    timestamp: u64,
    /// Counts up by one over all types, also those that were not asked for; begins anew with the agent. Absent for what is no event.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    /// To whom it belongs; absent: to nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<String>,
    /// The session in which it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
}

impl BusEnvelope {
    /// Around what is no event of the bus itself.
    pub(super) fn now(event: BusEvent, unix_ms: u64) -> Self {
        Self { event, timestamp: unix_ms, sequence: None, sender: None, session_id: None }
    }

    /// Of an event of the agent; `None` for one that this gateway does not know.
    pub(super) fn of(event: agent::BusEvent) -> Option<Self> {
        let agent::BusEvent { sequence, unix_ms, sender, session_id: session, payload } = event;
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        Some(Self {
            event: BusEvent::of(payload?, &session),
            timestamp: unix_ms,
            sequence: Some(sequence),
            sender: some(sender),
            session_id: some(session).map(|session| session_id(&session)),
        })
    }

    pub(super) fn type_name(&self) -> &'static str {
        self.event.kind().map_or("missed", EventKind::as_str)
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("keys are texts and numbers are finite")
    }
}

/// Events are missing here, since the client reads too slowly.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MissedEvents {
    /// How many of the types that were asked for.
    pub(super) count: u64,
}

// The name is a tt: a literal would come to the derives in a group, which the one for schemas does not look into.
macro_rules! events {
    ($($variant:ident($payload:ty) = $name:tt, $when:literal;)+) => {
        /// An event, by its type. The list is closed.
        #[derive(Debug, Serialize, ToSchema)]
        #[serde(tag = "type", content = "payload")]
        pub(super) enum BusEvent {
            $(#[doc = $when] #[serde(rename = $name)] $variant($payload),)+
            /// Events are missing here.
            #[serde(rename = "missed")]
            Missed(MissedEvents),
        }

        impl BusEvent {
            /// Its kind; `None`: some are missing.
            pub(super) fn kind(&self) -> Option<EventKind> {
                match self {
                    $(Self::$variant(_) => Some(EventKind::$variant),)+
                    Self::Missed(_) => None,
                }
            }

            fn of(payload: Payload, session: &str) -> Self {
                match payload {
                    $(Payload::$variant(payload) => Self::$variant((payload, session).into()),)+
                }
            }
        }

        /// The names as they are written, by kind.
        #[cfg(test)]
        const NAMES: &[(EventKind, &str)] = &[$((EventKind::$variant, $name)),+];
    };
}

events! {
    MessageInbound(BusMessageIn) = "message.inbound", "A session got a message.";
    MessageOutbound(BusMessageOut) = "message.outbound", "The answer of a turn is complete.";
    ToolExecute(BusToolExecute) = "tool.execute", "A model wants a tool to run.";
    ToolComplete(BusToolComplete) = "tool.complete", "A call has its result, with what each layer of the guard did.";
    ShadowEvent(ShadowEvent) = "shadow.event", "What a watcher saw, before anything is decided about it.";
    ShadowGhost(ShadowGhost) = "shadow.ghost", "A proposal that nobody asked for, or that changed.";
    SessionCreated(BusSession) = "session.created", "A session got its first message.";
    SessionIdle(BusSessionIdle) = "session.idle", "A session went idle.";
    ConfigChanged(BusConfig) = "config.changed", "Another configuration is in force.";
    AgentThinking(BusThinking) = "agent.thinking", "A turn begins a step in which a model is asked.";
    PluginReady(BusPlugin) = "plugin.ready", "An instance takes calls.";
    PluginFailed(BusPlugin) = "plugin.failed", "An instance failed, and is not started again by itself.";
    PluginRestarting(BusPlugin) = "plugin.restarting", "An instance waits to be started again.";
    PluginStopped(BusPlugin) = "plugin.stopped", "An instance was stopped.";
    PluginExited(BusPlugin) = "plugin.exited", "A process of a plugin ended.";
    PluginChanged(BusPlugin) = "plugin.changed", "A plugin declares other actions, resources, prompts or scripts.";
    PluginReplaced(BusPlugin) = "plugin.replaced", "A plugin's processes were replaced, or that failed.";
    PluginEvent(BusPlugin) = "plugin.event", "A plugin told what happened elsewhere.";
    GuardRefused(BusGuard) = "guard.refused", "A layer refused a call of a turn.";
    GuardNeutralized(BusGuard) = "guard.neutralized", "Control syntax in an answer was neutralized.";
    GuardQuarantined(BusGuard) = "guard.quarantined", "A plugin gets no calls: it kept sending control syntax.";
    GuardDeclarationChanged(BusGuard) = "guard.declaration_changed", "What an action declares is not what was approved.";
    ApprovalWaiting(BusApproval) = "approval.waiting", "A call, a question or a plan waits for a person.";
    ApprovalDecided(BusApproval) = "approval.decided", "It was approved, denied or answered.";
    ApprovalEnded(BusApproval) = "approval.ended", "It waits no more, and nobody decided.";
    TaskStarted(BusTask) = "task.started", "A run of a job begins.";
    TaskCompleted(BusTask) = "task.completed", "A run of a job is done.";
    TaskFailed(BusTask) = "task.failed", "A run of a job, or the task of a sub-agent, failed.";
    TaskRetried(BusTask) = "task.retried", "A run of a job goes on later.";
    NotificationSending(BusNotification) = "notification.sending", "An attempt to deliver a notification begins.";
    NotificationDelivered(BusNotification) = "notification.delivered", "A notification was delivered.";
    NotificationFailed(BusNotification) = "notification.failed", "Its sink refused a notification, or all attempts failed.";
    NotificationRetried(BusNotification) = "notification.retried", "There will be another attempt.";
}

impl From<(agent::ShadowEvent, &str)> for ShadowEvent {
    fn from((event, _): (agent::ShadowEvent, &str)) -> Self {
        event.into()
    }
}

impl From<(agent::Ghost, &str)> for ShadowGhost {
    fn from((ghost, _): (agent::Ghost, &str)) -> Self {
        ghost.into()
    }
}

#[cfg(test)]
mod tests {
    use talon_proto::agent::{SessionIdle, ToolComplete};
    use talon_proto::host::GuardLayer;

    use super::*;

    // Promises: GW-153
    #[test]
    fn the_gateway_has_every_kind_of_the_bus_under_its_name() {
        let names: Vec<(EventKind, &str)> =
            EventKind::ALL.iter().map(|kind| (*kind, kind.as_str())).collect();
        assert_eq!(NAMES, names);
    }

    // Promises: GW-152
    #[test]
    fn a_finished_call_is_told_with_what_the_guard_did() {
        let layer = GuardLayer {
            layer: "resolve".to_owned(),
            verdict: "deny".to_owned(),
            duration_ns: Some(1500),
            reason: "not_granted".to_owned(),
        };
        let complete = ToolComplete {
            call_id: "c1".to_owned(),
            outcome: "failed".to_owned(),
            layers: vec![layer],
            ..ToolComplete::default()
        };
        let event = agent::BusEvent {
            sequence: 7,
            sender: "anna".to_owned(),
            session_id: "01A".to_owned(),
            payload: Some(Payload::ToolComplete(complete)),
            ..agent::BusEvent::default()
        };
        let envelope = BusEnvelope::of(event).unwrap();
        assert_eq!(envelope.type_name(), "tool.complete");
        let json: serde_json::Value = serde_json::from_str(&envelope.to_json()).unwrap();
        assert_eq!(json["type"], "tool.complete");
        assert_eq!((&json["sequence"], &json["sender"]), (&7.into(), &"anna".into()));
        assert_eq!(json["sessionId"], "sess_01A");
        let told = &json["payload"]["layers"][0];
        assert_eq!((&told["verdict"], &told["us"]), (&"deny".into(), &1.5.into()));
        let idle = agent::BusEvent {
            payload: Some(Payload::SessionIdle(SessionIdle {})),
            ..agent::BusEvent::default()
        };
        assert_eq!(BusEnvelope::of(idle).unwrap().type_name(), "session.idle");
        assert!(BusEnvelope::of(agent::BusEvent::default()).is_none(), "it is not known here");
        let missed = BusEnvelope::now(BusEvent::Missed(MissedEvents { count: 3 }), 1);
        assert_eq!((missed.type_name(), missed.to_json().contains("\"count\":3")), ("missed", true));
    }
}
