//! All the ways in which a call to a plugin can fail.

use std::sync::Arc;
use std::time::Duration;

use talon_sanitize::Sanitized;

/// How many characters of a plugin's own error message are kept: enough for a sentence or two, and short
/// enough for a log line.
pub const MAX_STATUS_MESSAGE_CHARS: usize = 2048;

/// Why a call has no answer. [`ExecuteError::retryable`] says whether the same call may succeed a little
/// later.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// The plugin's process ended while the call was in flight. Whether the action took effect is unknown.
    #[error("the plugin died during the call ({exit})")]
    Died {
        /// How it ended: "exit code 3", "killed by SIGSEGV".
        exit: Sanitized,
        /// Whether it is being started again.
        restarting: bool,
    },
    /// No instance is ready, and none became ready in time.
    #[error("the plugin is not available: {reason}")]
    Unavailable {
        /// Why; the text for operators ends with what to do next.
        reason: Sanitized,
        /// Whether it becomes ready again without an operator.
        retryable: bool,
    },
    /// The plugin was stopped or restarted while the call was in flight, and the grace period ran out.
    #[error("the plugin was stopped during the call")]
    Stopped,
    /// The deadline passed. The call was cancelled on the wire.
    #[error("no answer within {} ms", waited.as_millis())]
    TimedOut {
        /// How long this call waited, from when it reached the plugin's executor.
        waited: Duration,
        /// Whether it was sent to the plugin: it did not only wait for an instance.
        sent: bool,
    },
    /// The answer is larger than the transport limit; at most that much was buffered.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes (`max_message_bytes`).
        limit: usize,
    },
    /// The plugin answered with a gRPC error.
    #[error("the plugin answered with {code:?}: {message}")]
    Status {
        /// Its code.
        code: tonic::Code,
        /// Its message, cut to [`MAX_STATUS_MESSAGE_CHARS`] characters.
        message: Sanitized,
    },
    /// The connection broke, or an HTTP/2 stream was reset, while the plugin lived on.
    #[error("the connection to the plugin failed: {0}")]
    Transport(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The response is not a gRPC message.
    #[error("the plugin's answer is not gRPC: {0}")]
    NotDecodable(Sanitized),
}

impl ExecuteError {
    /// Whether the action may have taken effect, although there is no answer.
    #[must_use]
    pub fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::Died { .. } | Self::Stopped | Self::Transport(_) => true,
            Self::TimedOut { sent, .. } => *sent,
            // Was not sent, or was answered.
            Self::Unavailable { .. }
            | Self::TooLarge { .. }
            | Self::Status { .. }
            | Self::NotDecodable(_) => false,
        }
    }

    /// Whether the same call may succeed a little later.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            Self::Died { restarting, .. } => *restarting,
            Self::Unavailable { retryable, .. } => *retryable,
            Self::TimedOut { .. } | Self::Stopped | Self::Transport(_) => true,
            Self::Status { code, .. } => matches!(
                code,
                tonic::Code::Unavailable | tonic::Code::ResourceExhausted | tonic::Code::Aborted
            ),
            Self::TooLarge { .. } | Self::NotDecodable(_) => false,
        }
    }
}
