//! The error of a chain, with all attempts.

use std::fmt;
use std::time::Duration;

use crate::model::{ErrorClass, ProviderError};
use crate::route::cost::{AccountError, OverBudgetError};
use crate::route::retry;
use crate::route::router::{RouteError, SkippedCandidate, WholeSeconds, reasons};

use super::attempt::Attempt;

/// No model answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExhaustedError {
    /// The reason.
    pub reason: ExhaustedReason,
    /// All attempts.
    pub attempts: Vec<Attempt>,
    /// Models that were not tried, each with its reason, as far as they were considered.
    pub skipped: Vec<SkippedCandidate>,
    /// The total time, including the waits.
    pub total_latency_ms: u64,
}

/// Why a chain ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExhaustedReason {
    /// No model could be asked.
    NoRoute(Box<RouteError>),
    /// It would exceed a budget.
    OverBudget(Box<OverBudgetError>),
    /// The request's own account does not pay for it.
    Account(AccountError),
    /// An error that another model would only hide: wrong key, transcript too long, wrong request.
    Final(ProviderError),
    /// All models that could be asked failed.
    AllFailed,
    /// The time for the whole request is over.
    DeadlineExceeded {
        /// The time limit.
        patience: Duration,
    },
    /// An attempt failed after its first piece, and the listener cannot withdraw pieces.
    CannotWithdraw(ProviderError),
}

impl ExhaustedError {
    /// The class of the provider's error that ended it, if there is one.
    #[must_use]
    pub fn class(&self) -> Option<ErrorClass> {
        match &self.reason {
            ExhaustedReason::Final(error) | ExhaustedReason::CannotWithdraw(error) => Some(error.class),
            ExhaustedReason::AllFailed | ExhaustedReason::DeadlineExceeded { .. } => {
                self.attempts.last()?.error.as_ref().map(|error| error.class)
            }
            ExhaustedReason::NoRoute(_) | ExhaustedReason::OverBudget(_) | ExhaustedReason::Account(_) => {
                None
            }
        }
    }
}

impl std::error::Error for ExhaustedError {}

impl fmt::Display for ExhaustedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An error that ends the chain is that of the last attempt, and is shown once.
        let before = match &self.reason {
            ExhaustedReason::NoRoute(error) => {
                write!(f, "{error}")?;
                &self.attempts[..]
            }
            ExhaustedReason::OverBudget(error) => {
                write!(f, "{error}")?;
                &self.attempts[..]
            }
            ExhaustedReason::Account(error) => {
                write!(f, "{error}")?;
                &self.attempts[..]
            }
            ExhaustedReason::Final(error) => match self.attempts.split_last() {
                // With the model: it, or the key that it is asked with, has to be mended.
                Some((Attempt { provider, model, .. }, before)) => {
                    write!(f, "{provider}/{model}: {}", error.message)?;
                    before
                }
                None => {
                    write!(f, "{error}")?;
                    &[][..]
                }
            },
            ExhaustedReason::CannotWithdraw(error) => {
                write!(
                    f,
                    "the answer broke off: {error}; what was said of it so far is not to be relied on"
                )?;
                self.attempts.split_last().map_or(&[][..], |(_, before)| before)
            }
            ExhaustedReason::AllFailed => {
                f.write_str("no model answered")?;
                if self.attempts.is_empty() {
                    f.write_str(&reasons(&self.skipped))?;
                }
                &self.attempts[..]
            }
            ExhaustedReason::DeadlineExceeded { patience } => {
                write!(f, "no model answered within {}", WholeSeconds(*patience))?;
                &self.attempts[..]
            }
        };
        for (index, attempt) in before.iter().enumerate() {
            let Attempt { provider, model, error, .. } = attempt;
            let lead = if index == 0 { ". Tried: " } else { "; " };
            write!(f, "{lead}{provider}/{model}")?;
            if let Some(error) = error {
                write!(f, " ({}: {})", retry::word(error.class), error.message)?;
            }
        }
        Ok(())
    }
}
