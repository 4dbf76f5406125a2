//! Why a request cannot be routed.

use std::fmt;
use std::time::Duration;

use super::{Outage, RejectionReason, SkippedCandidate};
use crate::route::catalog::{ModelRef, UnknownModelError};

/// A request cannot be routed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// A pin matches no model.
    #[error("{0}")]
    UnknownPin(UnknownModelError),
    /// A pinned model cannot answer this.
    #[error("{model} was asked for and {why}: choose another model, or none, so that one is chosen for you")]
    PinUnfit {
        /// The model.
        model: ModelRef,
        /// The reason.
        why: RejectionReason,
    },
    /// The catalog is empty.
    #[error("no model is configured: list one under models.catalog")]
    NoModels,
    /// No model can answer this.
    #[error("no model can answer this{}", reasons(passed_over))]
    NoneFits {
        /// All of them, with the reason for each.
        passed_over: Vec<SkippedCandidate>,
    },
}

/// The most models named with their reasons; `talon model list` has all.
const MAX_NAMED: usize = 5;

pub(in crate::route) fn reasons(passed_over: &[SkippedCandidate]) -> String {
    let mut text = String::new();
    for SkippedCandidate { model, why } in passed_over.iter().take(MAX_NAMED) {
        text.push_str(if text.is_empty() { ": " } else { "; " });
        text.push_str(&format!("{model} {why}"));
    }
    match passed_over.len().saturating_sub(MAX_NAMED) {
        0 => text,
        more => format!("{text}; and {more} more"),
    }
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTools => f.write_str("cannot call tools"),
            Self::NoVision => f.write_str("cannot look at pictures"),
            Self::Window { takes, needed } => {
                write!(f, "takes {takes} tokens where about {needed} are needed")
            }
            Self::Out(outage) => outage.fmt(f),
        }
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSetUp { what } => write!(f, "is not set up: {what}"),
            Self::Failing { retry_in } if retry_in.is_zero() => {
                f.write_str("failed again and again and is just being tried again")
            }
            Self::Failing { retry_in } => {
                write!(f, "failed again and again and is left alone for {}", WholeSeconds(*retry_in))
            }
            Self::RateLimited { retry_in } => {
                write!(f, "takes no more requests for {}", WholeSeconds(*retry_in))
            }
            Self::NoCredit { retry_in } => {
                write!(f, "has no credit left and is tried again in {}", WholeSeconds(*retry_in))
            }
        }
    }
}

/// A duration in whole seconds, rounded up: `0 s` would be a lie.
pub(in crate::route) struct WholeSeconds(pub(in crate::route) Duration);

impl fmt::Display for WholeSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs().saturating_add(u64::from(self.0.subsec_nanos() > 0));
        match seconds {
            0..120 => write!(f, "{seconds} s"),
            _ => write!(f, "{} min", seconds.div_ceil(60)),
        }
    }
}
