//! Calls a tool in the test's own process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use talon_proto::plugin::CredentialHeader;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{CannedModel, MemoryState, ProgressLog, arguments};
use crate::context::{ProgressSink, TraceHeaders};
use crate::model::ModelSource;
use crate::settings::Settings;
use crate::state::StateSource;
use crate::{Output, Tool, ToolError, context};

/// Runs a tool with these arguments, a JSON object. Use [`Call`] to set more.
///
/// # Errors
/// The tool's error: [`ToolError::message`] is what the caller would read and [`ToolError::cause`] what the
/// log would show.
///
/// # Panics
/// When the tool panics, or `args` is no object.
pub async fn call(tool: Tool, args: Value) -> Result<Output, ToolError> {
    Call::new(tool).args(args).run().await
}

/// One call of a tool in the test's own process, with everything that a host can send along.
#[must_use = "nothing happens until it runs"]
pub struct Call {
    tool: Tool,
    args: Value,
    call: context::Call,
    settings: Settings,
    timeout: Option<Duration>,
}

impl Call {
    /// A call without arguments, settings, state or deadline.
    pub fn new(tool: Tool) -> Self {
        let call = context::Call {
            id: "test-call".to_owned(),
            action: tool.name().to_owned(),
            arguments: None,
            takes_input_requests: false,
            input_response: None,
            deadline: None,
            cancelled: CancellationToken::new(),
            injected: BTreeMap::new(),
            credentials: BTreeMap::new(),
            settings: Arc::default(),
            state: StateSource::from_env(None),
            model: ModelSource::at(None),
            progress: ProgressSink::None,
            trace: TraceHeaders::default(),
        };
        Self { tool, args: json!({}), call, settings: Settings::after_init(), timeout: None }
    }

    /// Sets the arguments, a JSON object.
    pub fn args(mut self, args: Value) -> Self {
        self.args = args;
        self
    }

    /// Sets the value that [`Context::config`](crate::Context::config) or
    /// [`Context::shared`](crate::Context::shared) returns.
    pub fn with<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.settings.insert(value);
        self
    }

    /// Makes the call part of a trace: a `traceparent` for
    /// [`Context::trace_parent`](crate::Context::trace_parent).
    pub fn trace_parent(mut self, parent: &str) -> Self {
        self.call.trace.parent = Some(parent.to_owned());
        self
    }

    /// Sets a value of the session context. As with a real host, the tool sees it only if it declares the
    /// name.
    pub fn injected(mut self, name: &str, value: &str) -> Self {
        self.call.injected.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Gives the tool a credential.
    pub fn credential(mut self, name: &str, header: &str, value: &str) -> Self {
        let credential = CredentialHeader { header: header.to_owned(), value: value.to_owned() };
        self.call.credentials.insert(name.to_owned(), credential);
        self
    }

    /// Gives the tool this state.
    pub fn state(mut self, state: &MemoryState) -> Self {
        self.call.state = StateSource::Memory(state.shared());
        self
    }

    /// Grants the tool these models.
    pub fn model(mut self, model: &CannedModel) -> Self {
        self.call.model = ModelSource::Canned(model.shared());
        self
    }

    /// Collects the progress that the tool reports.
    pub fn progress(mut self, log: &ProgressLog) -> Self {
        self.call.progress = ProgressSink::Log(log.clone());
        self
    }

    /// Sets a deadline this far in the future; the call is dropped when it passes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Runs the call.
    ///
    /// # Errors
    /// The tool's error; a separate [`ToolError`] when the deadline passed.
    ///
    /// # Panics
    /// When the tool panics, or the arguments are no object.
    pub async fn run(self) -> Result<Output, ToolError> {
        let Self { tool, args, mut call, settings, timeout } = self;
        let mut arguments = arguments(&args);
        // On the wire injected values are among the arguments, and only those that the action declares.
        let injected = std::mem::take(&mut call.injected);
        let declared = tool.action().inject_context_args;
        for (name, value) in injected.iter().filter(|(name, _)| declared.contains(name)) {
            arguments.insert_string(name, value);
        }
        let args = arguments.texts();
        call.arguments = Some(arguments);
        call.settings = Arc::new(settings);
        let Some(timeout) = timeout else { return tool.run(args, call).await };
        call.deadline = Some(Instant::now() + timeout);
        match tokio::time::timeout(timeout, tool.run(args, call)).await {
            Ok(result) => result,
            Err(elapsed) => Err(ToolError::new("the deadline passed").because(elapsed)),
        }
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("tool", &self.tool).field("args", &self.args).finish_non_exhaustive()
    }
}
