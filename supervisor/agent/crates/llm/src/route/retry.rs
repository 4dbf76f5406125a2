//! The table of how each class of error is handled, and the waits.

use std::time::Duration;

use crate::model::ErrorClass;

/// Which model is asked next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackTarget {
    /// None: the request itself has to be corrected.
    NoFallback,
    /// The next model, even of the same provider: only this model failed.
    OtherModel,
    /// Models of other providers, then others of this one: either the model or the provider failed.
    OtherProviderFirst,
    /// Models of other providers only: no model of this one can answer.
    OtherProvider,
}

/// How a class of error is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Whether the same model is asked again, [`RetrySettings::retries`] times.
    pub retried: bool,
    /// Which model is asked after that.
    pub next: FallbackTarget,
    /// Whether it counts as a failure for the provider's breaker. Deliberate responses of a working provider
    /// do not.
    pub counts: bool,
    /// Whether the model or provider rests, for as long as it asks, or as [`RetrySettings`] says.
    pub rests: bool,
}

impl RetryPolicy {
    /// Whether another model may be asked.
    #[must_use]
    pub fn falls_back(self) -> bool {
        self.next != FallbackTarget::NoFallback
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
pub const fn policy(class: ErrorClass) -> RetryPolicy {
    let (retried, next, counts, rests) = match class {
        ErrorClass::Network => (true, FallbackTarget::OtherProvider, true, false),
        ErrorClass::Timeout => (true, FallbackTarget::OtherProviderFirst, true, false),
        ErrorClass::RateLimit => (false, FallbackTarget::OtherModel, false, true),
        ErrorClass::Billing => (false, FallbackTarget::OtherProvider, false, true),
        ErrorClass::Server => (true, FallbackTarget::OtherModel, true, false),
        // A wrong key, a transcript that is too long and a wrong request have to be corrected; another
        // provider would hide them.
        ErrorClass::Auth | ErrorClass::Context | ErrorClass::Request => {
            (false, FallbackTarget::NoFallback, false, false)
        }
    };
    RetryPolicy { retried, next, counts, rests }
}

/// The class as a word, for programs.
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

/// The settings of retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// The number of retries, at most [`MAX_RETRIES`]. Default 3, as founded.
    pub retries: u32,
    /// The wait before the first retry; doubles with each. Default 500 ms: with three retries a failure of
    /// three seconds ends no request.
    pub backoff_initial: Duration,
    /// The longest wait, without what the provider asks for. Default 10 s.
    pub backoff_max: Duration,
    /// The largest random addition to a wait, so that requests that failed together do not return together.
    /// Default 50 ms.
    pub jitter: Duration,
    /// The longest `Retry-After` for which a request is held while another model is ready. Default 30 s. For a
    /// longer one the request falls back at once; where no other model is ready it waits, within its deadline.
    pub retry_after_max: Duration,
    /// How long a model rests that has had too many requests and does not say for how long. Default 30 s:
    /// limits are by the minute nearly everywhere.
    pub rate_limit_rest: Duration,
    /// How long a provider rests without credit. Default 10 min: credit comes back by a person's hand.
    pub billing_rest: Duration,
    /// The longest rest, whatever a provider asks for. Default 1 h: past it a limit of a day is found again
    /// with one request.
    pub rest_max: Duration,
}

pub use talon_agent_settings::MAX_RETRIES;

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            retries: 3,
            backoff_initial: Duration::from_millis(500),
            backoff_max: Duration::from_secs(10),
            jitter: Duration::from_millis(50),
            retry_after_max: Duration::from_secs(30),
            rate_limit_rest: Duration::from_secs(30),
            billing_rest: Duration::from_secs(600),
            rest_max: Duration::from_secs(3600),
        }
    }
}

/// A random number: 0 adds nothing to a wait, `u32::MAX` the whole jitter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitterDraw(pub u32);

impl RetrySettings {
    /// The wait before the `retry`-th retry, from 1; `None` if the provider asks for more than a request is
    /// held.
    #[must_use]
    pub fn wait(&self, retry: u32, retry_after: Option<Duration>, drawn: JitterDraw) -> Option<Duration> {
        let doublings = retry.saturating_sub(1).min(31);
        let backoff = self.backoff_initial.saturating_mul(1 << doublings).min(self.backoff_max);
        let jitter = self.jitter.mul_f64(f64::from(drawn.0) / f64::from(u32::MAX)).min(self.jitter);
        let requested = retry_after.unwrap_or_default();
        (requested <= self.retry_after_max).then(|| backoff.max(requested).saturating_add(jitter))
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
