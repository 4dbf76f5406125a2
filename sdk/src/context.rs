//! What a tool can learn about the call it serves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use talon_arguments::Arguments;
use talon_proto::plugin::{CredentialHeader, InputResponse};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ToolError;
use crate::model::{Model, ModelError, ModelSource};
use crate::notices::PendingNotices;
use crate::progress::ProgressLog;
use crate::settings::Settings;
use crate::state::{State, StateError, StateSource};

/// One call, as the tool sees it. Cheap to clone; clones belong to the same call.
///
/// # Cancellation
/// When the caller gives up or the deadline passes, the tool's future is dropped at its next `.await`. Work
/// without an `.await` (a thread, [`Context::blocking`]) has to check [`Context::is_cancelled`] from time to
/// time.
#[derive(Clone)]
pub struct Context {
    call: Arc<Call>,
}

/// The parts of a context, filled in by the code that starts the call.
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) action: String,
    pub(crate) arguments: Option<Arguments>,
    pub(crate) takes_input_requests: bool,
    pub(crate) input_response: Option<InputResponse>,
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancelled: CancellationToken,
    pub(crate) injected: BTreeMap<String, String>,
    pub(crate) credentials: BTreeMap<String, CredentialHeader>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) state: StateSource,
    pub(crate) model: ModelSource,
    pub(crate) progress: ProgressSink,
    pub(crate) trace: TraceHeaders,
}

/// The trace that a call belongs to, from its headers.
#[derive(Debug, Clone, Default)]
pub(crate) struct TraceHeaders {
    pub(crate) parent: Option<String>,
    pub(crate) state: Option<String>,
}

/// Where progress reports go.
pub(crate) enum ProgressSink {
    /// To the host, if it listens.
    Host(Arc<PendingNotices>),
    /// To a unit test.
    Log(ProgressLog),
    None,
}

impl Context {
    pub(crate) fn new(call: Call) -> Self {
        Self { call: Arc::new(call) }
    }

    /// The call's id, as in the host's log.
    #[must_use]
    pub fn call_id(&self) -> &str {
        &self.call.id
    }

    /// The action's name.
    #[must_use]
    pub fn action(&self) -> &str {
        &self.call.action
    }

    /// The arguments as JSON, with their types; `None` when the caller sent texts alone. Without the injected
    /// values that are no parameters of the action.
    #[must_use]
    pub fn arguments(&self) -> Option<&Arguments> {
        self.call.arguments.as_ref()
    }

    /// Whether the caller can put a question to its user. Only then an [`Output::question`](crate::Output::question) is
    /// asked; otherwise the caller gets an error in its place.
    #[must_use]
    pub fn takes_input_requests(&self) -> bool {
        self.call.takes_input_requests
    }

    /// The answer to the question of an earlier call of this action.
    #[must_use]
    pub fn input_response(&self) -> Option<&InputResponse> {
        self.call.input_response.as_ref()
    }

    /// The call's position in a trace, as a `traceparent` of
    /// [W3C Trace Context](https://www.w3.org/TR/trace-context/). Send it with the tool's own requests, or
    /// use it as the parent of the tool's own spans. `None` when the call is not traced.
    #[must_use]
    pub fn trace_parent(&self) -> Option<&str> {
        self.call.trace.parent.as_deref()
    }

    /// Vendor data of tracing systems, as a `tracestate` header. Pass it on unchanged together with
    /// [`trace_parent`](Context::trace_parent).
    #[must_use]
    pub fn trace_state(&self) -> Option<&str> {
        self.call.trace.state.as_deref()
    }

    /// When the caller stops waiting; `None` when it set no limit.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.call.deadline
    }

    /// How long the caller still waits; zero when the deadline has passed, `None` when it set no limit.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        self.call.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether the call was cancelled: the caller gave up, or the deadline passed.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.call.cancelled.is_cancelled() || self.remaining() == Some(Duration::ZERO)
    }

    /// A token that is cancelled when the call ends, for tasks that the tool spawns.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.call.cancelled.clone()
    }

    /// A value of the caller's session context that the action declared with `inject(…)`; `None` when the
    /// operator does not grant it or the caller has none.
    #[must_use]
    pub fn injected(&self, name: &str) -> Option<&str> {
        self.call.injected.get(name).map(String::as_str)
    }

    /// A credential that the operator configured for this plugin.
    #[must_use]
    pub fn credential(&self, name: &str) -> Option<Credential<'_>> {
        self.call
            .credentials
            .get(name)
            .map(|header| Credential { header: &header.header, value: &header.value })
    }

    /// The plugin's settings, as [`Plugin::config`](crate::Plugin::config) read them.
    ///
    /// # Errors
    /// When the plugin does not declare `T` as its config, or the host has sent none yet: a fault of the
    /// plugin or the host, so the caller gets a generic message and the log the reason.
    pub fn config<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, ToolError> {
        Ok(self.call.settings.get::<T>()?)
    }

    /// What [`Plugin::init`](crate::Plugin::init) made of the settings.
    ///
    /// # Errors
    /// As for [`Context::config`].
    pub fn shared<T: Send + Sync + 'static>(&self) -> Result<Arc<T>, ToolError> {
        self.config::<T>()
    }

    /// The plugin's own key-values, kept by the host.
    ///
    /// # Errors
    /// [`StateError::NotServed`] on a host that serves none.
    pub fn state(&self) -> Result<State, StateError> {
        self.call.state.open()
    }

    /// The models that the operator grants this plugin, for this call: completions are charged to the turn that
    /// made it, and are cancelled when it ends.
    ///
    /// # Errors
    /// [`ModelError::NotGranted`] when the operator grants none.
    pub fn model(&self) -> Result<Model, ModelError> {
        self.call.model.open(&self.call.id)
    }

    /// Reports how far the call has come: `progress` grows, in a unit that the tool chooses; `total` is the
    /// value at the end of the call, if that is known; `message` is one line for people, of which 1 KiB is
    /// sent.
    ///
    /// It never waits and never fails. A report is dropped when a later one replaces it before the host takes
    /// it, when no host listens, when the call has ended, and when `progress` is negative or not a number.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: &str) {
        let call = &self.call;
        if call.cancelled.is_cancelled() {
            return;
        }
        match &call.progress {
            ProgressSink::Host(board) => board.progress(&call.id, progress, total, message),
            ProgressSink::Log(log) => log.add(&call.id, progress, total, message),
            ProgressSink::None => {}
        }
    }

    /// Runs blocking work (files, computing) on a separate thread, so that other calls and health checks
    /// proceed meanwhile.
    ///
    /// The work returns a `Result`, like a tool. It is not stopped when the call ends: a loop has to check
    /// [`Context::is_cancelled`] of a clone.
    ///
    /// # Errors
    /// The work's own. A panic in it becomes a panic of the tool.
    pub async fn blocking<T, F>(&self, work: F) -> Result<T, ToolError>
    where
        T: Send + 'static,
        F: FnOnce() -> Result<T, ToolError> + Send + 'static,
    {
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(cancelled) => Err(cancelled.into()),
            },
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("call_id", &self.call.id)
            .field("action", &self.call.action)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

/// A header for the tool's own requests. Its `Debug` hides the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Credential<'c> {
    /// The header's name, such as `Authorization`.
    pub header: &'c str,
    /// The header's value. A secret: keep it out of answers and logs.
    pub value: &'c str,
}

impl fmt::Debug for Credential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("header", &self.header).field("value", &"…").finish()
    }
}
