//! Why a completion failed, classified by what a plugin can do about it.

use std::error::Error as _;

use talon_proto::model::Refusal;
use tonic::{Code, Status};

use super::SOCKET_ENV;

/// Why there is no completion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The operator grants this plugin no model.
    #[error(
        "this plugin is granted no model: {SOCKET_ENV} is not set (the operator grants some under `models` of the plugin's entry)"
    )]
    NotGranted,
    /// Something in the request does not fit.
    #[error("{message}")]
    Invalid {
        /// What, and how it has to be.
        message: String,
    },
    /// The alias is not granted; the text names those that are.
    #[error("{message}")]
    UnknownModel {
        /// The text of the host.
        message: String,
    },
    /// The call is not one of this plugin that is in flight for a turn, and the plugin has no budget of its own.
    #[error("{message}")]
    NoCall {
        /// The text of the host.
        message: String,
    },
    /// The most completions of this call, or of this day, are made.
    #[error("{message}")]
    TooManyCalls {
        /// The text of the host.
        message: String,
    },
    /// The turn, the session, the day or the plugin has no money left for it.
    #[error("{message}")]
    OverBudget {
        /// The text of the host.
        message: String,
    },
    /// Too many completions at once. A later attempt may succeed.
    #[error("{message}")]
    Busy {
        /// The text of the host.
        message: String,
    },
    /// No model can be asked, or all that were asked failed.
    #[error("{message}")]
    NoModel {
        /// The text of the host.
        message: String,
    },
    /// The time for it is over.
    #[error("{message}")]
    TimedOut {
        /// The text of the host.
        message: String,
    },
    /// The call or its turn ended.
    #[error("{message}")]
    Cancelled {
        /// The text of the host.
        message: String,
    },
    /// The host's agent cannot be reached, or ended meanwhile. A later attempt may succeed; this one may have
    /// been charged.
    #[error("the host's models are not available for now: {message}")]
    Unavailable {
        /// The text of the host or the connection.
        message: String,
    },
    /// The host failed, or refused for a reason without a variant here.
    #[error("the host's models answered {code:?}: {message}")]
    Refused {
        /// The gRPC status.
        code: Code,
        /// The text of the host.
        message: String,
    },
}

impl ModelError {
    /// A word for programs: `not_granted`, `invalid`, `unknown_model`, `no_call`, `too_many_calls`,
    /// `over_budget`, `busy`, `no_model`, `timed_out`, `cancelled`, `unavailable` or `refused`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotGranted => "not_granted",
            Self::Invalid { .. } => "invalid",
            Self::UnknownModel { .. } => "unknown_model",
            Self::NoCall { .. } => "no_call",
            Self::TooManyCalls { .. } => "too_many_calls",
            Self::OverBudget { .. } => "over_budget",
            Self::Busy { .. } => "busy",
            Self::NoModel { .. } => "no_model",
            Self::TimedOut { .. } => "timed_out",
            Self::Cancelled { .. } => "cancelled",
            Self::Unavailable { .. } => "unavailable",
            Self::Refused { .. } => "refused",
        }
    }

    /// The status that a host would return, for mock hosts.
    pub(crate) fn to_status(&self) -> Status {
        let code = match self {
            Self::Invalid { .. } => Code::InvalidArgument,
            Self::UnknownModel { .. } => Code::NotFound,
            Self::NoCall { .. } => Code::FailedPrecondition,
            Self::TooManyCalls { .. } | Self::OverBudget { .. } | Self::Busy { .. } => {
                Code::ResourceExhausted
            }
            Self::NotGranted | Self::NoModel { .. } | Self::Unavailable { .. } => Code::Unavailable,
            Self::TimedOut { .. } => Code::DeadlineExceeded,
            Self::Cancelled { .. } => Code::Cancelled,
            Self::Refused { code, .. } => *code,
        };
        match self {
            Self::NotGranted | Self::Unavailable { .. } | Self::Refused { .. } => {
                Status::new(code, self.to_string())
            }
            _ => Refusal { reason: self.reason().to_owned() }.into_status(code, self.to_string()),
        }
    }
}

impl From<Status> for ModelError {
    fn from(status: Status) -> Self {
        let message = status.message().to_owned();
        // A status with a source was made on this side, for a connection that could not be made or broke.
        if status.source().is_some() {
            return Self::Unavailable { message };
        }
        let reason = Refusal::of(&status).map(|refusal| refusal.reason).unwrap_or_default();
        match (reason.as_str(), status.code()) {
            ("invalid", _) | (_, Code::InvalidArgument | Code::OutOfRange) => Self::Invalid { message },
            ("unknown_model", _) => Self::UnknownModel { message },
            ("no_call", _) => Self::NoCall { message },
            ("too_many_calls", _) => Self::TooManyCalls { message },
            ("over_budget", _) => Self::OverBudget { message },
            ("no_model", _) => Self::NoModel { message },
            ("cancelled", _) => Self::Cancelled { message },
            ("timed_out", _) | (_, Code::DeadlineExceeded) => Self::TimedOut { message },
            ("busy", _) | (_, Code::ResourceExhausted) => Self::Busy { message },
            // A timeout on this side appears as "cancelled", too.
            (_, Code::Unavailable | Code::Cancelled) => Self::Unavailable { message },
            (_, code) => Self::Refused { code, message },
        }
    }
}
