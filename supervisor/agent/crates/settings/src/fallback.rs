//! `models.fallback`: retries, fallback and breakers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::span::TimeSpan;

/// The most retries: with a wait of 10 s each, ten take longer than a person waits.
pub const MAX_RETRIES: u32 = 10;

/// What happens when a model fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FallbackKeys {
    /// The time for all attempts and waits of a request. Retries end at half of it if another model can be
    /// asked.
    ///
    /// 10m: the longest answers take no longer.
    pub patience: TimeSpan,
    /// How long an attempt may go without a piece of an answer.
    ///
    /// 5m: a provider's `timeouts` usually end an attempt earlier; this is a second limit. It should be
    /// longer than all of them, and not longer than `patience`.
    pub silence: TimeSpan,
    /// How often a model is asked again after a network error, a timeout, an error of the server (5xx), or a
    /// stream that broke. At most 10.
    #[schemars(range(max = 10))]
    pub retries: u32,
    /// The wait before the first retry; doubles with each.
    ///
    /// 500ms: with three retries, a failure of three seconds ends no request.
    pub backoff_initial: TimeSpan,
    /// The longest wait between two attempts, unless a provider asks for more.
    pub backoff_max: TimeSpan,
    /// A random time up to this is added to each wait, so that requests that failed together are not retried
    /// together.
    pub jitter: TimeSpan,
    /// The longest `Retry-After` for which a request waits while another model is ready. Where none is, it
    /// waits as long as its turn has time, and says so.
    pub retry_after_max: TimeSpan,
    /// How long a rate-limited model is not asked if the provider gives no time.
    ///
    /// 30s: nearly all providers limit by the minute.
    pub rate_limit_rest: TimeSpan,
    /// How long a provider without credit is not asked, if another one can be.
    ///
    /// 10m: a person has to add credit.
    pub billing_rest: TimeSpan,
    /// The longest time for which a model is not asked, whatever its provider requests.
    pub rest_max: TimeSpan,
    /// When a failing provider is not asked.
    pub breaker: BreakerKeys,
}

/// When a failing provider is not asked, and how it recovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerKeys {
    /// The consecutive failures that open the breaker, each with all its retries.
    #[schemars(range(min = 1, max = 1000))]
    pub failures: u32,
    /// How long the provider is not asked at first; doubles with each failed probe.
    pub open_for: TimeSpan,
    /// The longest time for which the provider is not asked.
    pub open_max: TimeSpan,
    /// The consecutive successful probes that close the breaker.
    #[schemars(range(min = 1, max = 100))]
    pub successes: u32,
    /// The time between two probes of a recovering provider.
    pub probe_every: TimeSpan,
    /// How long a probe may take.
    pub probe_timeout: TimeSpan,
}

impl Default for FallbackKeys {
    fn default() -> Self {
        Self {
            patience: TimeSpan::from_secs(600),
            silence: TimeSpan::from_secs(300),
            retries: 3,
            backoff_initial: TimeSpan::from_millis(500),
            backoff_max: TimeSpan::from_secs(10),
            jitter: TimeSpan::from_millis(50),
            retry_after_max: TimeSpan::from_secs(30),
            rate_limit_rest: TimeSpan::from_secs(30),
            billing_rest: TimeSpan::from_secs(600),
            rest_max: TimeSpan::from_secs(3600),
            breaker: BreakerKeys::default(),
        }
    }
}

impl Default for BreakerKeys {
    fn default() -> Self {
        Self {
            failures: 3,
            open_for: TimeSpan::from_secs(60),
            open_max: TimeSpan::from_secs(600),
            successes: 2,
            probe_every: TimeSpan::from_secs(5),
            probe_timeout: TimeSpan::from_secs(10),
        }
    }
}

impl FallbackKeys {
    /// Checks beyond the types. Returns one sentence for each problem, with its key and what to do.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let Self { patience, silence, retries, backoff_initial, backoff_max, breaker, .. } = *self;
        let mut found = Vec::new();
        let mut problem = |wrong: bool, key: &str, message: String| {
            if wrong {
                found.push(format!("models.fallback.{key}: {message}"));
            }
        };
        let message = format!("{silence} is longer than patience ({patience}): lower it, or raise patience");
        problem(silence > patience, "silence", message);
        let message =
            format!("{backoff_initial} is longer than backoff_max ({backoff_max}): correct one of the two");
        problem(backoff_initial > backoff_max, "backoff_initial", message);
        problem(retries > MAX_RETRIES, "retries", format!("{retries} are more than {MAX_RETRIES}"));
        let (first, longest) = (breaker.open_for, breaker.open_max);
        let message = format!("{first} is longer than open_max ({longest}): correct one of the two");
        problem(first > longest, "breaker.open_for", message);
        let failures = breaker.failures;
        problem(
            !(1..=1000).contains(&failures),
            "breaker.failures",
            format!("{failures} is not between 1 and 1000"),
        );
        let successes = breaker.successes;
        problem(
            !(1..=100).contains(&successes),
            "breaker.successes",
            format!("{successes} is not between 1 and 100"),
        );
        found
    }
}
