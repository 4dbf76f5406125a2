//! Why there is no answer, with everything that was tried.

use std::fmt;
use std::time::Duration;

use crate::model::{ErrorClass, ProviderError};
use crate::route::cost::OverBudget;
use crate::route::retry;
use crate::route::router::{PassedOver, RouteError, Shown, reasons};

use super::attempt::Attempt;

/// No model answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exhausted {
    /// Why it ended.
    pub why: GaveUp,
    /// Everything that was tried.
    pub attempts: Vec<Attempt>,
    /// Models that were not tried, with the reason for each, as far as anybody looked at them.
    pub passed_over: Vec<PassedOver>,
    /// All of it, with the waits between.
    pub total_latency_ms: u64,
}

/// Why a chain ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GaveUp {
    /// There was nobody to ask.
    NoRoute(Box<RouteError>),
    /// It would have cost more than is left of a budget.
    OverBudget(Box<OverBudget>),
    /// An error that another model would only hide: wrong key, transcript too long, wrong request.
    Final(ProviderError),
    /// Everybody who could be asked failed.
    AllFailed,
    /// It took too long altogether.
    OutOfPatience {
        /// As long as it may take.
        patience: Duration,
    },
    /// The attempt had begun to speak, and the listener cannot take anything back.
    CannotWithdraw(ProviderError),
}

impl Exhausted {
    /// The class of what ended it, where it was a provider's error.
    #[must_use]
    pub fn class(&self) -> Option<ErrorClass> {
        match &self.why {
            GaveUp::Final(error) | GaveUp::CannotWithdraw(error) => Some(error.class),
            GaveUp::AllFailed | GaveUp::OutOfPatience { .. } => {
                self.attempts.last()?.error.as_ref().map(|error| error.class)
            }
            GaveUp::NoRoute(_) | GaveUp::OverBudget(_) => None,
        }
    }
}

impl std::error::Error for Exhausted {}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An error that ends the chain is the last attempt, too, and is told once.
        let before = match &self.why {
            GaveUp::NoRoute(error) => {
                write!(f, "{error}")?;
                &self.attempts[..]
            }
            GaveUp::OverBudget(error) => {
                write!(f, "{error}")?;
                &self.attempts[..]
            }
            GaveUp::Final(error) => {
                write!(f, "{error}")?;
                self.attempts.split_last().map_or(&[][..], |(_, before)| before)
            }
            GaveUp::CannotWithdraw(error) => {
                write!(
                    f,
                    "the answer broke off: {error}; what was said of it so far is not to be relied on"
                )?;
                self.attempts.split_last().map_or(&[][..], |(_, before)| before)
            }
            GaveUp::AllFailed => {
                f.write_str("no model answered")?;
                if self.attempts.is_empty() {
                    f.write_str(&reasons(&self.passed_over))?;
                }
                &self.attempts[..]
            }
            GaveUp::OutOfPatience { patience } => {
                write!(f, "no model answered within {}", Shown(*patience))?;
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
