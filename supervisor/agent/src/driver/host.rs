//! The supervisor's door, as a turn sees it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use talon_proto::host::ExecuteResponse;
use talon_proto::plugin::PluginCapabilities;

/// One call of one action, as the plugin gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCall {
    /// The plugin's name in the configuration.
    pub plugin: String,
    /// Which of its actions.
    pub action: String,
    /// Its arguments on the wire.
    pub args: BTreeMap<String, String>,
    /// `session_id`, `conversation_id`, `sender`, `channel`, `subagent`, `correlation_id`: the host holds its allow-lists against
    /// them, and hands on to the plugin what it declares and is granted.
    pub context: BTreeMap<String, String>,
    /// The patterns of the session and of the sub-agent; the host refuses what they do not cover. Empty takes nothing away.
    pub within: Vec<String>,
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// So far.
    pub progress: f64,
    /// Of how much, if it is known.
    pub total: Option<f64>,
    /// In words; sanitized by the host.
    pub message: String,
}

/// The door cannot be reached, or took what was asked for no question. What a plugin answered is never an error of this kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It cannot be reached, or broke off: whether a call was made is not known.
    #[error("the supervisor cannot be asked: {why}")]
    Unknown {
        /// What the connection said.
        why: String,
    },
    /// It was not made.
    #[error("the supervisor did not make it: {why}")]
    NotMade {
        /// What the supervisor said.
        why: String,
    },
}

/// Asks the supervisor, always `for_model`.
#[async_trait]
pub trait Host: Send + Sync {
    /// What may be called, by plugin: guarded, without what is for people alone.
    ///
    /// # Errors
    /// [`HostError`]
    async fn tools(&self) -> Result<Vec<(String, PluginCapabilities)>, HostError>;

    /// Makes a call. Dropping the future cancels it.
    ///
    /// # Errors
    /// [`HostError`]
    async fn execute(
        &self,
        call: &HostCall,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<ExecuteResponse, HostError>;
}
