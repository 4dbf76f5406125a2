//! The errors of layers and plugins below `rescue`.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::answer::Outcome;
use crate::reason;
use talon_error_chain::error_chain;

/// An error of a layer or of the plugin below it.
///
/// It has two texts: [`fmt::Display`] is what the model and the client may see, [`CallError::detail`] is the
/// whole chain for the log. `Display` may hold text that a plugin wrote, which is why the sanitize layer
/// stands above `rescue`.
#[derive(Debug, Clone)]
pub enum CallError {
    /// A layer refused the call.
    Refused {
        /// One of the constants in [`reason`].
        reason: &'static str,
        /// What the model and the client may see.
        message: String,
        /// Whether the same call may succeed a little later.
        retryable: bool,
        /// The cause, for the log.
        source: Option<Source>,
    },
    /// The plugin died, timed out, was not there, or answered with a gRPC error.
    Fault {
        /// One of the constants in [`reason`].
        reason: &'static str,
        /// What the model and the client may see.
        message: String,
        /// Whether the same call may succeed a little later.
        retryable: bool,
        /// Whether the action may have taken effect, although there is no answer.
        effect_unknown: bool,
        /// The cause, for the log.
        source: Option<Source>,
    },
    /// A defect of Talon: logged in full, reported to callers in general terms.
    Defect {
        /// The cause, for the log.
        source: Source,
    },
}

/// A cause, shared so that an error can be cloned.
pub type Source = Arc<dyn Error + Send + Sync + 'static>;

impl CallError {
    /// A refusal that a retry does not change.
    #[must_use]
    pub fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Refused { reason, message: message.into(), retryable: false, source: None }
    }

    /// A fault that a retry may not meet again.
    #[must_use]
    pub fn fault(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Fault { reason, message: message.into(), retryable: true, effect_unknown: false, source: None }
    }

    /// A defect of the host.
    #[must_use]
    pub fn defect(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Defect { source: Arc::from(source.into()) }
    }

    /// The same error with a cause, which `rescue` then logs.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let (Self::Refused { source, .. } | Self::Fault { source, .. }) = &mut self else { return self };
        *source = Some(Arc::from(cause.into()));
        self
    }

    /// The same error, marked as retryable or not. A defect is never retryable.
    #[must_use]
    pub fn with_retryable(mut self, can_retry: bool) -> Self {
        if let Self::Refused { retryable, .. } | Self::Fault { retryable, .. } = &mut self {
            *retryable = can_retry;
        }
        self
    }

    /// The same fault of a call that may have taken effect: it is not retryable, and says so. It counts for
    /// the breaker like a retryable one.
    #[must_use]
    pub fn with_unknown_effect(mut self) -> Self {
        if let Self::Fault { message, retryable, effect_unknown, .. } = &mut self
            && !std::mem::replace(effect_unknown, true)
        {
            *retryable = false;
            message.push_str("; whether the action took effect is not known");
        }
        self
    }

    /// Whether the action may have taken effect, although there is no answer.
    #[must_use]
    pub fn is_effect_unknown(&self) -> bool {
        matches!(self, Self::Fault { effect_unknown: true, .. })
    }

    /// The reason for programs: one of the constants in [`reason`].
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Refused { reason, .. } | Self::Fault { reason, .. } => reason,
            Self::Defect { .. } => reason::INTERNAL,
        }
    }

    /// The outcome of a call that ends with this error. Callers see a defect as a host fault.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match *self {
            Self::Refused { reason, retryable, .. } => Outcome::Refused { reason, retryable },
            Self::Fault { reason, retryable, .. } => Outcome::HostFault { reason, retryable },
            Self::Defect { .. } => Outcome::HostFault { reason: reason::INTERNAL, retryable: false },
        }
    }

    /// The message and all its causes, for the log only.
    #[must_use]
    pub fn detail(&self) -> String {
        error_chain(self)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { message, .. } | Self::Fault { message, .. } => f.write_str(message),
            Self::Defect { .. } => f.write_str("internal error"),
        }
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused { source, .. } | Self::Fault { source, .. } => {
                source.as_ref().map(|s| s.as_ref() as _)
            }
            Self::Defect { source } => Some(source.as_ref()),
        }
    }
}

impl From<Infallible> for CallError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The error of tower's own layers: a [`CallError`] that passed through them is taken out again. Anything
/// else is a defect, because its meaning to a caller is unknown.
impl From<Box<dyn Error + Send + Sync>> for CallError {
    fn from(error: Box<dyn Error + Send + Sync>) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => *own,
            Err(foreign) => Self::defect(foreign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GUARD-45
    #[test]
    fn the_outside_learns_nothing_of_a_defect_and_the_log_everything() {
        let cause = std::io::Error::other("table /etc/secret is locked");
        let error = CallError::defect(cause);
        assert_eq!(error.to_string(), "internal error");
        assert_eq!(error.detail(), "internal error: table /etc/secret is locked");
        assert_eq!(error.outcome(), Outcome::HostFault { reason: "internal", retryable: false });
    }

    #[test]
    fn a_call_error_survives_being_boxed() {
        let boxed: Box<dyn Error + Send + Sync> = CallError::refused(reason::OVERLOADED, "full").into();
        assert_eq!(CallError::from(boxed).reason(), "overloaded");
        let foreign: Box<dyn Error + Send + Sync> = "no idea".into();
        assert_eq!(CallError::from(foreign).reason(), "internal");
    }

    /// An error whose cause is itself.
    #[derive(Debug, thiserror::Error)]
    #[error("again")]
    struct CyclicError {
        source: &'static CyclicError,
    }

    #[test]
    fn a_chain_without_an_end_has_one() {
        static CYCLIC_ERROR: CyclicError = CyclicError { source: &CYCLIC_ERROR };
        let error = CallError::defect(CyclicError { source: &CYCLIC_ERROR });
        assert_eq!(error.detail(), "internal error: again");
    }

    #[test]
    fn causes_are_kept() {
        let error = CallError::fault(reason::DIED, "gone").caused_by("signal 9").with_retryable(false);
        assert_eq!(error.detail(), "gone: signal 9");
        assert_eq!(error.outcome(), Outcome::HostFault { reason: "died", retryable: false });
    }
}
