//! What is done about each class of error, as one table, and how long is waited.

use std::time::Duration;

use crate::model::ErrorClass;

/// Who is asked next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nobody: the request itself is to be mended.
    Nobody,
    /// The next model, be it the same provider's: the failure is this one's own.
    OtherModel,
    /// Models of other providers, and this one's after them: it may be this model, or all of the provider.
    OtherProviderFirst,
    /// Models of other providers alone: this one's cannot answer, either.
    OtherProvider,
}

/// What is done about a class of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Asked again, at the same model, [`RetrySettings::retries`] times.
    pub retried: bool,
    /// Who is asked when that is over.
    pub next: Next,
    /// Counts as a failure of the provider for its breaker. What a living provider answers on purpose does not.
    pub counts: bool,
    /// The model, or provider, is left alone for as long as it says, or as [`RetrySettings`] says.
    pub rests: bool,
}

impl Policy {
    /// Whether another model may be asked.
    #[must_use]
    pub fn falls_back(self) -> bool {
        self.next != Next::Nobody
    }
}

/// All classes.
pub const CLASSES: [ErrorClass; 8] = [
    ErrorClass::Network,
    ErrorClass::Timeout,
    ErrorClass::RateLimit,
    ErrorClass::Billing,
    ErrorClass::Server,
    ErrorClass::Auth,
    ErrorClass::Context,
    ErrorClass::Request,
];

/// The table.
#[must_use]
pub const fn policy(class: ErrorClass) -> Policy {
    let (retried, next, counts, rests) = match class {
        ErrorClass::Network => (true, Next::OtherProvider, true, false),
        ErrorClass::Timeout => (true, Next::OtherProviderFirst, true, false),
        ErrorClass::RateLimit => (false, Next::OtherModel, false, true),
        ErrorClass::Billing => (false, Next::OtherProvider, false, true),
        ErrorClass::Server => (false, Next::OtherModel, true, false),
        // A wrong key, a transcript that is too long and a wrong request are to be mended, and another provider would hide them.
        ErrorClass::Auth | ErrorClass::Context | ErrorClass::Request => (false, Next::Nobody, false, false),
    };
    Policy { retried, next, counts, rests }
}

/// The word for programs.
#[must_use]
pub const fn word(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Auth => "auth",
        ErrorClass::RateLimit => "rate_limit",
        ErrorClass::Timeout => "timeout",
        ErrorClass::Context => "context",
        ErrorClass::Billing => "billing",
        ErrorClass::Network => "network",
        ErrorClass::Server => "server",
        ErrorClass::Request => "request",
    }
}

/// How often and when a request is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// How often after the first time, at most [`MAX_RETRIES`]. Default 3, as founded.
    pub retries: u32,
    /// The wait before the first of them; doubles with each. Default 100 ms.
    pub backoff_initial: Duration,
    /// The longest wait, without what the provider asks for. Default 10 s.
    pub backoff_max: Duration,
    /// Up to this is added by chance, so that those who failed together do not come back together. Default 50 ms.
    pub jitter: Duration,
    /// The longest `Retry-After` for which a request is held. Default 30 s: about what a person waits without a sign. A
    /// longer one counts as a failure at once: the request falls back, or fails with a sentence that says when.
    pub retry_after_max: Duration,
    /// How long a model rests that has had too many requests and does not say for how long. Default 30 s: limits are by the
    /// minute nearly everywhere.
    pub rate_limit_rest: Duration,
    /// How long a provider rests without credit. Default 10 min: credit comes back by a person's hand.
    pub billing_rest: Duration,
    /// The longest rest, whatever a provider asks for. Default 1 h: past it a limit of a day is found again with one request.
    pub rest_max: Duration,
}

pub use talon_agent_settings::MAX_RETRIES;

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            retries: 3,
            backoff_initial: Duration::from_millis(100),
            backoff_max: Duration::from_secs(10),
            jitter: Duration::from_millis(50),
            retry_after_max: Duration::from_secs(30),
            rate_limit_rest: Duration::from_secs(30),
            billing_rest: Duration::from_secs(600),
            rest_max: Duration::from_secs(3600),
        }
    }
}

/// A number that was drawn: 0 adds nothing to a wait, `u32::MAX` all of the jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn(pub u32);

impl RetrySettings {
    /// The wait before the `retry`-th retry, from 1; `None` if the provider wants a longer one than a request is held for.
    #[must_use]
    pub fn wait(&self, retry: u32, retry_after: Option<Duration>, drawn: Drawn) -> Option<Duration> {
        let doublings = retry.saturating_sub(1).min(31);
        let backoff = self.backoff_initial.saturating_mul(1 << doublings).min(self.backoff_max);
        let jitter = self.jitter.mul_f64(f64::from(drawn.0) / f64::from(u32::MAX)).min(self.jitter);
        let asked = retry_after.unwrap_or_default();
        (asked <= self.retry_after_max).then(|| backoff.max(asked).saturating_add(jitter))
    }

    /// How long a model or a provider rests after such an error; `None` if it does not.
    #[must_use]
    pub fn rest(&self, class: ErrorClass, retry_after: Option<Duration>) -> Option<Duration> {
        let unsaid = match class {
            ErrorClass::Billing => self.billing_rest,
            _ => self.rate_limit_rest,
        };
        policy(class).rests.then(|| retry_after.unwrap_or(unsaid).min(self.rest_max))
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
