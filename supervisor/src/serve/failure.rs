//! Why a supervisor could not start, or ended by itself.

use std::io;

use talon_plugin::SetupError;
use talon_sanitize::SettingsError;

use super::TakeoverError;
use crate::host::{BindError, ServeError};
use crate::state::{NoProgram, NotOpened};

/// Why the supervisor could not start, or ended by itself. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeFailure {
    /// The image that plugins are started from could not be made.
    #[error("cannot prepare the jail: {0}")]
    Stage(#[from] talon_jail::StageError),
    /// The plugins' side could not begin; another supervisor may run.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The socket could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The sanitizer does not take the operator's patterns.
    #[error("guard.forbidden_patterns: {0}")]
    Patterns(#[from] SettingsError),
    /// The socket failed while serving.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// There is nothing to keep state with.
    #[error(transparent)]
    StateProgram(#[from] NoProgram),
    /// A listener for metrics that was handed in cannot be served.
    #[error(transparent)]
    Admin(#[from] crate::admin::ListenerError),
    /// State cannot be kept.
    #[error(transparent)]
    State(#[from] NotOpened),
    /// Another supervisor was not taken over from.
    #[error(transparent)]
    Takeover(#[from] TakeoverError),
    /// Nothing can be recorded.
    #[error("cannot start the audit log's thread: {0}; see whether the process limit (ulimit -u) is reached")]
    Audit(#[source] io::Error),
    /// The kernel does not deliver signals.
    #[error("cannot wait for signals: {0}")]
    Signals(#[source] io::Error),
}
