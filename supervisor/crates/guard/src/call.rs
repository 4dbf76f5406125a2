//! The call that goes down the stack.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use talon_arguments::{Arguments, ArgumentsError};
use talon_proto::plugin::{CredentialHeader, InputResponse};
use talon_sanitize::Sanitized;
use tokio::time::Instant;
use tracing::Span;

use crate::arc_by_id::ArcById;
use crate::call_output::{OutputObserver, RawOutput};
use crate::layer_timings::LayerTimings;

/// Who made the call. The dispatcher decides it from the peer's uid, never from a field of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A person at a command line or in a user interface.
    Person,
    /// A language model, through an agent.
    Model,
    /// Another program.
    Program,
    /// One of the supervisor's own services, for an extension: the action plays a [role](CallFields::role).
    System,
}

impl Origin {
    /// The value for logs and programs: `person`, `model`, `program` or `system`.
    #[must_use]
    #[inline]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Model => "model",
            Self::Program => "program",
            Self::System => "system",
        }
    }
}

/// Which actions a caller may call, as the operator decided. `resolve` checks it before anything else.
pub trait Grant: Send + Sync {
    /// Whether the caller may call this action of this plugin, if the action exists.
    fn covers(&self, plugin: &str, action: &str) -> bool;
    /// Whether the caller may call any action of this plugin.
    fn covers_any_action(&self, plugin: &str) -> bool;
    /// What to do if an action is not covered: the end of the refusal.
    fn remedy(&self, _plugin: &str, _action: &str) -> &'static str {
        "ask the operator to add it to `allow` of your entry under host.peers"
    }
}

/// Receives the progress of a call. Its texts are sanitized.
pub trait ProgressObserver: Send + Sync {
    /// Reports progress, and the total if it is known. Must not block.
    fn progress(&self, progress: f64, total: Option<f64>, message: &Sanitized);
}

/// Connects a call to an external trace. The guard starts the call's span and knows nothing else of traces.
pub trait TraceContext: Send + Sync {
    /// Called when the call's span was created, before anything happens in it.
    fn begin(&self, call: &Span);
    /// The metadata by which a service that is called within this span continues the trace.
    fn outgoing_metadata(&self, request: &Span) -> Vec<(&'static str, String)>;
}

/// The key of the session context that distinguishes a caller's conversations.
pub const SESSION_KEY: &str = "session_id";

/// One call to a plugin.
///
/// Its [fields](CallFields) are on the heap: a call is moved from layer to layer and into each of their
/// futures. Moving half a kilobyte each time took a tenth of the time of a small call.
#[derive(Clone, PartialEq)]
pub struct Call(Box<CallFields>);

/// The fields of a [`Call`].
///
/// The dispatcher makes a call with the caller's values. `resolve` sets what only the host may set
/// (`declared_name`, injected context arguments, `credentials`); `deadline` sets `deadline`. The names that
/// several layers keep until there is an answer are shared, so that keeping one copies nothing.
#[derive(Clone, PartialEq)]
pub struct CallFields {
    /// Identifies the call in logs, on the wire and in the answer, which must carry the same id.
    pub id: Arc<str>,
    /// The configured name of the plugin, by which calls are routed.
    pub plugin: Arc<str>,
    /// The action to run.
    pub action: String,
    /// Identifies the caller in the guard's stores: text stored for one scope cannot be read by another, and
    /// taint does not cross scopes. The dispatcher decides it, for instance from uid and session; callers
    /// that may see each other's answers may share one.
    pub scope: Arc<str>,
    /// The plugins whose recent answers share text with the arguments, sorted. Set by `taint`.
    pub tainted_by: Vec<String>,
    /// The caller's arguments as texts; after `resolve` also the injected ones.
    pub args: BTreeMap<String, String>,
    /// The same arguments as JSON, if the caller sent them so. Set by [`Call::set_arguments`]; whoever changes
    /// one of the two changes the other.
    pub json: Option<Arguments>,
    /// Why the caller's arguments are not usable. `resolve` refuses such a call.
    pub arguments_error: Option<ArgumentsError>,
    /// Who made the call.
    pub origin: Origin,
    /// The role that the action plays in this call, if it is made for an extension. Decided by the dispatcher.
    pub role: Option<&'static str>,
    /// Whether its arguments and its answer are bytes in envelopes, which no model and no person reads: they are not compared with
    /// other texts, and nothing in them counts towards a quarantine. Decided by the dispatcher.
    pub opaque: bool,
    /// What the caller may call; `None`: everything. Decided by the dispatcher.
    pub granted: Option<ArcById<dyn Grant>>,
    /// Whether `granted` covers the action, once that was asked.
    grant_verdict: Option<bool>,
    /// Whether the caller takes images, audio, resources and links.
    pub wants_media: bool,
    /// Whether the caller can put a plugin's question to its user.
    pub takes_input_requests: bool,
    /// The answer to such a question of an earlier call.
    pub input_response: Option<Box<InputResponse>>,
    /// Whether the answer also lists what its marked pieces were before. Decided by the dispatcher: only for a
    /// caller that keeps them from models.
    pub wants_originals: bool,
    /// Receives the call's progress, if the caller wants it.
    pub progress_observer: Option<ArcById<dyn ProgressObserver>>,
    /// Receives what the call puts out while it runs, if the caller wants it. `sanitize` takes it, and sets `raw_output`.
    pub output_observer: Option<ArcById<dyn OutputObserver>>,
    /// Takes what the plugin puts out. Set by `sanitize`.
    pub raw_output: Option<ArcById<RawOutput>>,
    /// The trace that the call belongs to, if there is one.
    pub trace: Option<ArcById<dyn TraceContext>>,
    /// The caller's session context. A plugin gets of it only what its action declares and the operator
    /// grants.
    pub context: BTreeMap<String, String>,
    /// When the call came in. Its time counts from here, wherever it waits.
    pub accepted: Instant,
    /// The time the caller is willing to wait; it shortens the configured timeout, never lengthens it.
    /// `deadline` clears one that shortens nothing, so below `deadline` it means that the caller's timeout
    /// ends the call.
    pub timeout: Option<Duration>,
    /// When the call times out. Set by `deadline`.
    pub deadline: Option<Instant>,
    /// The name the plugin declared for itself, which is what it sees on the wire. Set by `resolve`.
    pub declared_name: String,
    /// Credentials from the operator's configuration. Set by `resolve`.
    pub credentials: BTreeMap<String, CredentialHeader>,
    /// The times that the layers record while metrics are read. Set by the outermost layer.
    pub layer_timings: Option<ArcById<LayerTimings>>,
}

impl Call {
    /// A call with nothing but the caller's own values, accepted now.
    #[must_use]
    pub fn new(
        id: impl Into<Arc<str>>,
        plugin: impl Into<Arc<str>>,
        action: impl Into<String>,
        origin: Origin,
    ) -> Self {
        Self(Box::new(CallFields {
            id: id.into(),
            plugin: plugin.into(),
            action: action.into(),
            scope: Arc::default(),
            tainted_by: Vec::new(),
            args: BTreeMap::new(),
            json: None,
            arguments_error: None,
            origin,
            role: None,
            opaque: false,
            granted: None,
            grant_verdict: None,
            wants_media: false,
            takes_input_requests: false,
            input_response: None,
            wants_originals: false,
            progress_observer: None,
            output_observer: None,
            raw_output: None,
            trace: None,
            context: BTreeMap::new(),
            accepted: Instant::now(),
            timeout: None,
            deadline: None,
            declared_name: String::new(),
            credentials: BTreeMap::new(),
            layer_timings: None,
        }))
    }

    /// Sets the arguments from the two forms that a request may carry: texts, JSON, or both. The JSON alone
    /// gives the texts, so that layers which look at texts see all that the plugin gets. Both have to be the
    /// same arguments. What is not usable is kept for `resolve`, whose refusal is counted and recorded as any
    /// other.
    pub fn set_arguments(&mut self, texts: BTreeMap<String, String>, json: &str) {
        self.args = texts;
        if json.is_empty() {
            return;
        }
        match Arguments::parse(json) {
            Ok(json) if self.args.is_empty() => {
                self.args = json.texts();
                self.json = Some(json);
            }
            Ok(json) => match json.agree(&self.args) {
                Ok(()) => self.json = Some(json),
                Err(error) => self.arguments_error = Some(error),
            },
            Err(error) => self.arguments_error = Some(error),
        }
    }

    /// Whether the caller may call this action. The grant is asked once: plugin, action and grant must not
    /// change afterwards.
    #[inline]
    pub fn is_granted(&mut self) -> bool {
        let CallFields { granted, grant_verdict, plugin, action, .. } = &mut **self;
        *grant_verdict
            .get_or_insert_with(|| granted.as_ref().is_none_or(|granted| granted.covers(plugin, action)))
    }

    /// The caller's name for the conversation, of any length; `None` if it has none.
    #[must_use]
    #[inline]
    pub fn session(&self) -> Option<&str> {
        self.context.get(SESSION_KEY).map(String::as_str).filter(|session| !session.is_empty())
    }
}

impl Deref for Call {
    type Target = CallFields;

    #[inline]
    fn deref(&self) -> &CallFields {
        &self.0
    }
}

impl DerefMut for Call {
    #[inline]
    fn deref_mut(&mut self) -> &mut CallFields {
        &mut self.0
    }
}

impl From<Call> for CallFields {
    fn from(call: Call) -> Self {
        *call.0
    }
}

/// Shows names, never values: arguments and session context are the user's, credentials the operator's, and a
/// `{:?}` in some log line must not publish them.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("plugin", &self.plugin)
            .field("action", &self.action)
            .field("scope", &self.scope)
            .field("tainted_by", &self.tainted_by)
            .field("args", &self.args.keys())
            .field("has_json", &self.json.is_some())
            .field("origin", &self.origin)
            .field("role", &self.role)
            .field("opaque", &self.opaque)
            .field("granted", &self.granted)
            .field("progress_observer", &self.progress_observer)
            .field("output_observer", &self.output_observer)
            .field("raw_output", &self.raw_output)
            .field("trace", &self.trace)
            .field("context", &self.context.keys())
            .field("accepted", &self.accepted)
            .field("timeout", &self.timeout)
            .field("deadline", &self.deadline)
            .field("declared_name", &self.declared_name)
            .field("credentials", &self.credentials.keys())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_value() {
        let mut call = Call::new("c1", "web", "fetch", Origin::Model);
        call.args.insert("q".into(), "hunter2-arg".into());
        call.context.insert("session_id".into(), "hunter2-context".into());
        call.credentials
            .insert("api".into(), CredentialHeader { header: "X".into(), value: "hunter2-key".into() });
        let shown = format!("{call:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("session_id") && shown.contains("api"), "{shown}");
    }
}
