//! Why a model is no candidate.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use talon_agent_settings::milliseconds;

use crate::route::catalog::ModelRef;

/// Why a model is no candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum RejectionReason {
    /// It does not support tools.
    NoTools,
    /// It does not support images.
    NoVision,
    /// It is not on this machine, and the text may not leave it.
    NotLocal,
    /// The request does not fit in its window.
    Window {
        /// Its window, in tokens.
        takes: u64,
        /// The tokens needed.
        needed: u64,
    },
    /// It cannot be asked now.
    Out(Outage),
}

/// A model that is no candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedCandidate {
    /// The model.
    pub model: ModelRef,
    /// The reason.
    #[serde(flatten)]
    pub why: RejectionReason,
}

/// Why a model cannot be asked now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Outage {
    /// Its provider needs a key and has none, or is not set up.
    NotSetUp {
        /// What to do, for people.
        what: String,
    },
    /// Its provider failed repeatedly.
    Failing {
        /// How long it is not asked.
        #[serde(rename = "retry_in_ms", serialize_with = "as_millis")]
        retry_in: Duration,
    },
    /// It reached its rate limit.
    RateLimited {
        /// How long it is not asked.
        #[serde(rename = "retry_in_ms", serialize_with = "as_millis")]
        retry_in: Duration,
    },
    /// The account has no credit.
    NoCredit {
        /// How long it is not asked.
        #[serde(rename = "retry_in_ms", serialize_with = "as_millis")]
        retry_in: Duration,
    },
}

fn as_millis<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(milliseconds(*time))
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
            Self::NoVision => {
                f.write_str("cannot look at pictures (its entry in models.catalog has no vision: true)")
            }
            Self::NotLocal => f.write_str("is not on this machine, which local_only requires"),
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
