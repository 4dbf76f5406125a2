//! The supervisor's host service, as a turn sees it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use talon_proto::host::{CallOutput, ExecuteResponse};
use talon_proto::plugin::{InputResponse, PluginCapabilities};

use crate::traces::SpanContext;

/// A call of an action, as the plugin receives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCall {
    /// The plugin's name in the configuration.
    pub plugin: String,
    /// The action.
    pub action: String,
    /// Its arguments as texts.
    pub args: BTreeMap<String, String>,
    /// The same as one JSON object, with their types; this is sent. Empty: the texts are sent.
    pub arguments_json: String,
    /// `session_id`, `conversation_id`, `sender`, `channel`, `subagent`, `correlation_id`, and `task`,
    /// `conversation` and `attachment` for an action that asks for them: the host checks its allow-lists against them,
    /// and passes on to the plugin those that it declares and is granted.
    pub context: BTreeMap<String, String>,
    /// The patterns of the session and of the sub-agent; the host refuses calls that they do not cover. Empty
    /// restricts nothing.
    pub within: Vec<String>,
    /// Whether the plugin may answer with a question to the person.
    pub takes_input_requests: bool,
    /// The person's answer to the question of an earlier call with these arguments.
    pub input_response: Option<InputResponse>,
    /// The call's position in a trace.
    pub trace: Option<SpanContext>,
    /// The call's id for the supervisor, which a plugin's completions name. Empty: the supervisor chooses one.
    pub call_id: String,
    /// Whether its way through the guard's layers is measured.
    pub measured: bool,
}

/// Progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The progress so far.
    pub progress: f64,
    /// The total, if known.
    pub total: Option<f64>,
    /// A message; sanitized by the host.
    pub message: String,
}

/// What is said of a call while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum CallUpdate {
    /// How far it has come.
    Progress(Progress),
    /// What it puts out, for people; nothing of it goes into a prompt.
    Output(CallOutput),
}

/// The host cannot be reached, or rejected the request. A plugin's answer is never an error of this kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The connection failed: whether the call was made is unknown.
    #[error("the supervisor cannot be asked: {why}")]
    Unknown {
        /// The connection's error.
        why: String,
    },
    /// The call was not made.
    #[error("the supervisor did not make it: {why}")]
    NotMade {
        /// The supervisor's reason.
        why: String,
    },
}

/// What plugins declare, by their names.
pub type DeclaredPlugins = Vec<(String, PluginCapabilities)>;

/// The supervisor's host service, always asked `for_model`.
#[async_trait]
pub trait Host: Send + Sync {
    /// Lists the actions by plugin: sanitized, without the parts for people.
    ///
    /// # Errors
    /// [`HostError`]
    async fn tools(&self) -> Result<DeclaredPlugins, HostError>;

    /// Makes a call. Dropping the future cancels it.
    ///
    /// # Errors
    /// [`HostError`]
    async fn execute(
        &self,
        call: &HostCall,
        watch: &mut (dyn FnMut(CallUpdate) + Send),
    ) -> Result<ExecuteResponse, HostError>;
}
