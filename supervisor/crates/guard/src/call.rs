//! What goes down the stack.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use talon_proto::plugin::CredentialHeader;
use talon_sanitize::Sanitized;
use tokio::time::Instant;
use tracing::Span;

use crate::laps::Laps;

/// Who asked. Decided by the door from the peer's uid, never from a field of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A person at a command line or in a user interface.
    Person,
    /// A language model, through an agent.
    Model,
    /// Another program.
    Program,
}

impl Origin {
    /// The word for logs and programs: `person`, `model` or `program`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Model => "model",
            Self::Program => "program",
        }
    }
}

/// What a caller may call at all, as the operator has decided. `resolve` asks it before it looks at anything else.
pub trait Grant: Send + Sync {
    /// Whether this action of this plugin may be called, if there is such a one.
    fn covers(&self, plugin: &str, action: &str) -> bool;
    /// Whether any action of this plugin may be.
    fn covers_some(&self, plugin: &str) -> bool;
    /// What to do about it if an action is not covered: the end of the refusal.
    fn what_to_do(&self, _plugin: &str, _action: &str) -> &'static str {
        "ask the operator to add it to `allow` of your entry under host.peers"
    }
}

/// Hears how far a call has come. Texts that reach it are sanitized.
pub trait Follow: Send + Sync {
    /// It has come so far, of so much if that is known. Must not wait.
    fn progress(&self, progress: f64, total: Option<f64>, message: &Sanitized);
}

/// Ties a call to a trace outside. The guard begins the call's span and knows nothing else of traces.
pub trait Traced: Send + Sync {
    /// The span of the call was made; nothing has happened in it yet.
    fn begin(&self, call: &Span);
    /// The metadata by which whoever is asked within this span goes on with the trace.
    fn onward(&self, request: &Span) -> Vec<(&'static str, String)>;
}

/// The value of the session context that tells one conversation of a caller from another.
pub const SESSION_KEY: &str = "session_id";

/// What the host hands down with a call: equal to itself alone, and nothing of it is shown.
pub struct Handed<T: ?Sized>(Arc<T>);

impl<T: ?Sized> Handed<T> {
    /// Hands this down.
    #[must_use]
    pub fn new(it: Arc<T>) -> Self {
        Self(it)
    }
}

impl<T: ?Sized> Deref for Handed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> Clone for Handed<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> PartialEq for Handed<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: ?Sized> fmt::Debug for Handed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handed").finish_non_exhaustive()
    }
}

/// One call on its way to a plugin.
///
/// Its [fields](CallFields) are on the heap: a call is handed from layer to layer and into each of their futures, and to move
/// half a kilobyte at each of these was a tenth of all that a small call cost.
#[derive(Clone, PartialEq)]
pub struct Call(Box<CallFields>);

/// What a [`Call`] is made of.
///
/// A call is made by the door with the caller's values; `resolve` fills what only the host may fill
/// (`declared_name`, injected context arguments, `credentials`), `deadline` fills `deadline`. The names that several layers
/// keep until there is an answer are shared, so that keeping one copies nothing.
#[derive(Clone, PartialEq)]
pub struct CallFields {
    /// Identifies the call in logs, on the wire and in the answer, which must carry the same id.
    pub id: Arc<str>,
    /// The configured name of the plugin, by which calls are routed.
    pub plugin: Arc<str>,
    /// The action to run.
    pub action: String,
    /// Who the caller is to the stores of the guard: what was kept for one scope no other one reads, and taint does not
    /// reach from one into another. Decided by the door, for instance from uid and session; callers that may see each
    /// other's answers may share one.
    pub scope: Arc<str>,
    /// The plugins whose recent answers the arguments carry a piece of, sorted. Set by `taint`.
    pub tainted_by: Vec<String>,
    /// The caller's arguments; after `resolve` also the injected ones.
    pub args: BTreeMap<String, String>,
    /// Who asked.
    pub origin: Origin,
    /// What the caller may call; `None`: everything. Decided by the door.
    pub granted: Option<Handed<dyn Grant>>,
    /// Who hears how far it is, if anybody does.
    pub follower: Option<Handed<dyn Follow>>,
    /// The trace that it is a part of, if it is.
    pub trace: Option<Handed<dyn Traced>>,
    /// The caller's session context. A plugin gets of it only what its action declares and the operator grants.
    pub context: BTreeMap<String, String>,
    /// When the call came in. Its time counts from here, wherever it waits.
    pub accepted: Instant,
    /// The time the caller is willing to wait; it shortens the configured timeout, never lengthens it. `deadline`
    /// clears a wish that shortens nothing, so that below it this means: the caller's own patience ends the call.
    pub timeout: Option<Duration>,
    /// The instant after which nobody waits any more. Set by `deadline`.
    pub deadline: Option<Instant>,
    /// The name the plugin declared for itself, which is what it sees on the wire. Set by `resolve`.
    pub declared_name: String,
    /// Credentials from the operator's configuration. Set by `resolve`.
    pub credentials: BTreeMap<String, CredentialHeader>,
    /// The marks that layers leave while somebody measures them. Set by the outermost.
    pub laps: Option<Handed<Laps>>,
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
            origin,
            granted: None,
            follower: None,
            trace: None,
            context: BTreeMap::new(),
            accepted: Instant::now(),
            timeout: None,
            deadline: None,
            declared_name: String::new(),
            credentials: BTreeMap::new(),
            laps: None,
        }))
    }

    /// The caller's conversation as the caller names it, of any length; `None` where it has none.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.context.get(SESSION_KEY).map(String::as_str).filter(|session| !session.is_empty())
    }
}

impl Deref for Call {
    type Target = CallFields;

    fn deref(&self) -> &CallFields {
        &self.0
    }
}

impl DerefMut for Call {
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
            .field("origin", &self.origin)
            .field("granted", &self.granted)
            .field("follower", &self.follower)
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
