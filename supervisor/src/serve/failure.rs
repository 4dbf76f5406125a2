//! Errors of starting and running a supervisor.

use std::io;

use talon_plugin::SetupError;
use talon_sanitize::SettingsError;

use super::TakeoverError;
use crate::host::ServeError;
use crate::socket::BindError;
use crate::state::{ProgramNotFoundError, StateOpenError};

/// Why the supervisor could not start, or ended unexpectedly. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeFailure {
    /// The stage executable, from which plugins are started, could not be created.
    #[error("cannot prepare the jail: {0}")]
    Stage(#[from] talon_jail::StageError),
    /// The registry could not start; another supervisor may be running.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The socket could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The operator's patterns are invalid.
    #[error("guard.forbidden_patterns: {0}")]
    Patterns(#[from] SettingsError),
    /// The socket failed while serving.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The program of the state service is missing.
    #[error(transparent)]
    StateProgram(#[from] ProgramNotFoundError),
    /// An inherited listener for metrics cannot be served.
    #[error(transparent)]
    Admin(#[from] crate::admin::ListenerError),
    /// The state service does not serve.
    #[error(transparent)]
    State(#[from] StateOpenError),
    /// The takeover from another supervisor failed.
    #[error(transparent)]
    Takeover(#[from] TakeoverError),
    /// The audit log could not start.
    #[error("cannot start the audit log's thread: {0}; see whether the process limit (ulimit -u) is reached")]
    Audit(#[source] io::Error),
    /// Signal handlers could not be installed.
    #[error("cannot wait for signals: {0}")]
    Signals(#[source] io::Error),
}
