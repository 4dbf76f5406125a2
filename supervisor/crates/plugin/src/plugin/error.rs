//! Why an operation on a plugin did not succeed.

use talon_plugin_config::name::PluginName;
use talon_sanitize::Sanitized;

use crate::approvals::ApproveError;
use crate::lifecycle::State;

/// Why an operation on a plugin did not succeed. The text ends with what to do next.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum OperateError {
    /// No instance became ready.
    #[error("{plugin} is {state}: {reason}")]
    NotReady {
        /// Which plugin.
        plugin: PluginName,
        /// Its current state. In `backoff` it is retried.
        state: State,
        /// Why.
        reason: Sanitized,
    },
    /// It was removed during the operation.
    #[error("{plugin} is no longer registered; `talon plugin list` shows what is")]
    Removed {
        /// Which plugin.
        plugin: PluginName,
    },
    /// The approval failed; nothing was approved.
    #[error(transparent)]
    Approve(ApproveFailure),
    /// Its capabilities could not be read again; the stored ones stay.
    #[error("the capabilities of {plugin} could not be read: {cause}; see `talon plugin logs {plugin}`")]
    Refresh {
        /// Which plugin.
        plugin: PluginName,
        /// Why.
        cause: Sanitized,
    },
}

/// Why nothing was approved. Other crates can use only its text.
#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct ApproveFailure(pub(super) ApproveError);
