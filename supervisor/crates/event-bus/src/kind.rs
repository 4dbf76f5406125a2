//! The kinds of events, each with who emits it.

use std::fmt;
use std::str::FromStr;

use talon_proto::agent::bus_event::Payload;
use talon_sanitize::nearest;

/// How much of a name that is none is repeated, in characters.
const MAX_SHOWN_CHARS: usize = 64;

macro_rules! kinds {
    ($($variant:ident = $name:literal, $payload:literal, $emitter:literal, $process:literal, $subscriber:literal, $when:literal;)+) => {
        /// What an event is about. The list is closed: an emitter or a subscriber of another kind does not compile.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventKind {
            $(#[doc = $when] $variant,)+
        }

        impl EventKind {
            /// All kinds, in the order of their families.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name outside.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// The message of `talon.agent.v1` that such events have.
            #[must_use]
            pub const fn payload(self) -> &'static str {
                match self { $(Self::$variant => $payload,)+ }
            }

            /// Which part of the system emits such events.
            #[must_use]
            pub const fn emitter(self) -> &'static str {
                match self { $(Self::$variant => $emitter,)+ }
            }

            /// In which process it happens. The bus that carries it is the agent's.
            #[must_use]
            pub const fn process(self) -> &'static str {
                match self { $(Self::$variant => $process,)+ }
            }

            /// Who subscribes to it beside those who watch the bus; empty: nobody.
            #[must_use]
            pub const fn subscriber(self) -> &'static str {
                match self { $(Self::$variant => $subscriber,)+ }
            }

            /// When it happens, in a sentence.
            #[must_use]
            pub const fn when(self) -> &'static str {
                match self { $(Self::$variant => $when,)+ }
            }

            /// The kind of a payload.
            #[must_use]
            pub const fn of(payload: &Payload) -> Self {
                match payload { $(Payload::$variant(_) => Self::$variant,)+ }
            }
        }
    };
}

kinds! {
    MessageInbound = "message.inbound", "MessageInbound", "`bus/turn_observer.rs`, when a turn begins", "talon-agent", "", "A session got a message: of a client, a channel, or a job.";
    MessageOutbound = "message.outbound", "MessageOutbound", "`bus/turn_observer.rs`, when a turn ends", "talon-agent", "", "The answer of a turn is complete.";
    ToolExecute = "tool.execute", "ToolExecute", "`bus/turn_observer.rs`, before the call", "talon-agent", "", "A model wants a tool to run.";
    ToolComplete = "tool.complete", "ToolComplete", "`bus/turn_observer.rs`, after the call", "talon-agent", "", "A call of a model has its result, with what each layer of the guard did.";
    ShadowEvent = "shadow.event", "ShadowEvent", "`shadow/shadow_loop.rs`", "talon-agent", "`FollowGhosts` with events", "A watcher saw something, and nothing is decided about it.";
    ShadowGhost = "shadow.ghost", "Ghost", "`shadow/shadow_loop.rs`", "talon-agent", "", "A ghost is new, or changed.";
    SessionCreated = "session.created", "SessionCreated", "`agent/start.rs`", "talon-agent", "", "A session got its first message.";
    SessionIdle = "session.idle", "SessionIdle", "`events/followed_sessions.rs`", "talon-agent", "", "A session went idle.";
    ConfigChanged = "config.changed", "ConfigChanged", "`reload/` of the supervisor, passed on by `bus/host_relay.rs`", "talon serve", "the gateway, from the supervisor itself: `config.updated`", "Another configuration is in force.";
    AgentThinking = "agent.thinking", "AgentThinking", "`bus/turn_observer.rs`", "talon-agent", "", "A turn begins a step in which a model is asked.";
    PluginReady = "plugin.ready", "PluginUpdate", "`driver/` of talon-plugin, passed on by `bus/host_relay.rs`", "talon serve", "proposals of jobs", "An instance takes calls.";
    PluginFailed = "plugin.failed", "PluginUpdate", "`driver/` of talon-plugin, passed on", "talon serve", "proposals of jobs", "An instance failed, and is not started again by itself.";
    PluginRestarting = "plugin.restarting", "PluginUpdate", "`driver/` of talon-plugin, passed on", "talon serve", "", "An instance waits to be started again.";
    PluginStopped = "plugin.stopped", "PluginUpdate", "`driver/` of talon-plugin, passed on", "talon serve", "proposals of jobs", "An instance was stopped.";
    PluginExited = "plugin.exited", "PluginUpdate", "`driver/` of talon-plugin, passed on", "talon serve", "", "A process of a plugin ended.";
    PluginChanged = "plugin.changed", "PluginUpdate", "`registry/` of talon-plugin, passed on", "talon serve", "proposals of jobs", "A plugin declares other actions, resources, prompts or scripts.";
    PluginReplaced = "plugin.replaced", "PluginUpdate", "`registry/` of talon-plugin, passed on", "talon serve", "proposals of jobs", "A plugin's processes were replaced, or that failed.";
    PluginEvent = "plugin.event", "PluginUpdate", "`events/` of the supervisor, passed on", "talon serve", "", "A plugin told what happened elsewhere.";
    GuardRefused = "guard.refused", "GuardUpdate", "`bus/turn_observer.rs`, from the supervisor's answer", "talon-agent", "", "A layer refused a call of a turn.";
    GuardNeutralized = "guard.neutralized", "GuardUpdate", "`bus/turn_observer.rs`, from the supervisor's answer", "talon-agent", "", "Control syntax in an answer was neutralized.";
    GuardQuarantined = "guard.quarantined", "GuardUpdate", "`dispatch/` of the supervisor, passed on", "talon serve", "", "A plugin gets no calls: it kept sending control syntax.";
    GuardDeclarationChanged = "guard.declaration_changed", "GuardUpdate", "`approvals/` of talon-plugin, passed on", "talon serve", "proposals of jobs", "What an action declares is not what was approved.";
    ApprovalWaiting = "approval.waiting", "ApprovalUpdate", "`approval/registry.rs`", "talon-agent", "", "A call, a question or a plan waits for a person.";
    ApprovalDecided = "approval.decided", "ApprovalUpdate", "`approval/registry.rs`", "talon-agent", "", "It was approved, denied or answered.";
    ApprovalEnded = "approval.ended", "ApprovalUpdate", "`approval/registry.rs`", "talon-agent", "", "It waits no more, and nobody decided.";
    TaskStarted = "task.started", "TaskUpdate", "`schedule/scheduler.rs`", "talon-agent", "the gateway: `task.*` on WebSocket and SSE", "A run of a job begins.";
    TaskCompleted = "task.completed", "TaskUpdate", "`schedule/scheduler.rs`", "talon-agent", "the gateway: `task.*` on WebSocket and SSE", "A run of a job is done.";
    TaskFailed = "task.failed", "TaskUpdate", "`schedule/scheduler.rs`; `bus/turn_observer.rs` for sub-agents", "talon-agent", "the gateway: `task.*` on WebSocket and SSE", "A run of a job, or the task of a sub-agent, failed and is not tried again.";
    TaskRetried = "task.retried", "TaskUpdate", "`schedule/scheduler.rs`", "talon-agent", "the gateway: `task.*` on WebSocket and SSE", "A run of a job goes on later: it failed and is tried again, or was interrupted.";
    NotificationSending = "notification.sending", "NotificationUpdate", "`notify/lane.rs`", "talon-agent", "", "An attempt to deliver a notification begins.";
    NotificationDelivered = "notification.delivered", "NotificationUpdate", "`notify/lane.rs`", "talon-agent", "", "A notification was delivered.";
    NotificationFailed = "notification.failed", "NotificationUpdate", "`notify/lane.rs`", "talon-agent", "", "Its sink refused a notification, or all attempts failed.";
    NotificationRetried = "notification.retried", "NotificationUpdate", "`notify/lane.rs`", "talon-agent", "", "An attempt failed or was interrupted, and there will be another.";
}

impl EventKind {
    /// The part before the dot, by which `tool.*` selects.
    #[must_use]
    pub fn family(self) -> &'static str {
        self.as_str().split('.').next().unwrap_or_default()
    }

    /// The kinds that a word selects: one kind, all of `FAMILY.*`, or all of `*`.
    ///
    /// # Errors
    /// [`UnknownKindError`], if there is none.
    pub fn selected(word: &str) -> Result<Vec<Self>, UnknownKindError> {
        let chosen = |kind: &&Self| match word.strip_suffix(".*") {
            _ if word == "*" => true,
            Some(family) => kind.family() == family,
            None => kind.as_str() == word,
        };
        let kinds: Vec<Self> = Self::ALL.iter().filter(chosen).copied().collect();
        if kinds.is_empty() { Err(UnknownKindError::new(word)) } else { Ok(kinds) }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for EventKind {
    type Err = UnknownKindError;

    fn from_str(word: &str) -> Result<Self, UnknownKindError> {
        let found = Self::ALL.iter().find(|kind| kind.as_str() == word);
        found.copied().ok_or_else(|| UnknownKindError::new(word))
    }
}

/// A word that names no kind of event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no kind of event {word:?}; {help}")]
pub struct UnknownKindError {
    /// The word, bounded.
    pub word: String,
    /// The nearest ones, or all families.
    pub help: String,
}

impl UnknownKindError {
    fn new(word: &str) -> Self {
        let mut families: Vec<String> =
            EventKind::ALL.iter().map(|kind| format!("{}.*", kind.family())).collect();
        families.dedup();
        let names = EventKind::ALL.iter().map(|kind| kind.as_str());
        let help = match nearest(word, names.chain(families.iter().map(String::as_str))).first() {
            Some(near) => format!("did you mean {near}?"),
            None => format!("docs/events.md lists them; the families are {}", families.join(", ")),
        };
        Self { word: word.chars().filter(|c| !c.is_control()).take(MAX_SHOWN_CHARS).collect(), help }
    }
}

#[cfg(test)]
#[path = "kind_tests.rs"]
mod tests;
