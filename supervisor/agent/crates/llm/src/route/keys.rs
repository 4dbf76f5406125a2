//! `models.fallback`: what an operator may say about retries, fallback and breakers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::breaker::{self, BreakerSettings};
use super::fallback::{self, ChainSettings};
use super::retry::{MAX_RETRIES, RetrySettings};
use crate::config::TimeSpan;

/// What happens when a model fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FallbackKeys {
    /// All tries and waits of a request together; retries end at half of it where another model can be asked.
    ///
    /// 10m: the longest answers take no longer.
    pub patience: TimeSpan,
    /// How long a try may be without a piece of an answer.
    ///
    /// 5m: a provider's own `timeouts` end a try before that; this is for the case that they do not. It should be above all of
    /// them, and not above `patience`.
    pub silence: TimeSpan,
    /// How often a model is asked again after a network error or a timeout. At most 10.
    #[schemars(range(max = 10))]
    pub retries: u32,
    /// The wait before the first retry; doubles with each.
    pub backoff_initial: TimeSpan,
    /// The longest wait between two tries, without what a provider asks for.
    pub backoff_max: TimeSpan,
    /// Up to this is added to a wait by chance, so that those who failed together do not come back together.
    pub jitter: TimeSpan,
    /// The longest `Retry-After` for which a request waits.
    ///
    /// 30s: about what a person waits without a sign.
    pub retry_after_max: TimeSpan,
    /// How long a model rests that has had too many requests and does not say for how long.
    ///
    /// 30s: limits are by the minute nearly everywhere.
    pub rate_limit_rest: TimeSpan,
    /// How long a provider rests without credit.
    ///
    /// 10m: credit comes back by a person's hand.
    pub billing_rest: TimeSpan,
    /// The longest rest, whatever a provider asks for.
    pub rest_max: TimeSpan,
    /// When a provider is left alone.
    pub breaker: BreakerKeys,
}

/// When a provider is left alone, and how it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerKeys {
    /// Requests in a row that failed, each with all its retries.
    #[schemars(range(min = 1, max = 1000))]
    pub failures: u32,
    /// How long it is left alone for the first time; doubles with each probe that fails.
    pub open_for: TimeSpan,
    /// How long it is left alone at most.
    pub open_max: TimeSpan,
    /// Probes in a row that have to go well until it is what it was before.
    #[schemars(range(min = 1, max = 100))]
    pub successes: u32,
    /// The time between two probes of one that is coming back.
    pub probe_every: TimeSpan,
    /// How long a probe may take.
    pub probe_timeout: TimeSpan,
}

impl Default for FallbackKeys {
    fn default() -> Self {
        Self {
            patience: span(fallback::DEFAULT_PATIENCE),
            silence: span(fallback::DEFAULT_SILENCE),
            retries: 3,
            backoff_initial: TimeSpan::from_millis(100),
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
            failures: breaker::DEFAULT_FAILURES,
            open_for: span(breaker::DEFAULT_OPEN_FOR),
            open_max: span(breaker::DEFAULT_OPEN_MAX),
            successes: breaker::DEFAULT_SUCCESSES,
            probe_every: span(breaker::DEFAULT_TRIAL_EVERY),
            probe_timeout: span(fallback::DEFAULT_PROBE_TIMEOUT),
        }
    }
}

/// Of a default, which is in whole milliseconds.
fn span(time: Duration) -> TimeSpan {
    TimeSpan::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

impl FallbackKeys {
    /// What no type can say of them: sentences, each with its key and what to do.
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

impl From<FallbackKeys> for ChainSettings {
    fn from(keys: FallbackKeys) -> Self {
        let BreakerKeys { failures, open_for, open_max, successes, probe_every, probe_timeout } =
            keys.breaker;
        Self {
            patience: keys.patience.get(),
            silence: keys.silence.get(),
            probe_timeout: probe_timeout.get(),
            retry: RetrySettings {
                retries: keys.retries,
                backoff_initial: keys.backoff_initial.get(),
                backoff_max: keys.backoff_max.get(),
                jitter: keys.jitter.get(),
                retry_after_max: keys.retry_after_max.get(),
                rate_limit_rest: keys.rate_limit_rest.get(),
                billing_rest: keys.billing_rest.get(),
                rest_max: keys.rest_max.get(),
            },
            breaker: BreakerSettings {
                failures,
                open_for: open_for.get(),
                open_max: open_max.get(),
                successes,
                trial_every: probe_every.get(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_chain() {
        assert_eq!(ChainSettings::from(FallbackKeys::default()), ChainSettings::default());
        assert!(FallbackKeys::default().problems().is_empty());
        let nothing: FallbackKeys = serde_saphyr::from_str("{}").expect("all keys have defaults");
        assert_eq!(nothing, FallbackKeys::default());
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let keys: FallbackKeys = serde_saphyr::from_str(
            "{ patience: 1m, silence: 2m, retries: 11, backoff_initial: 11s,
               breaker: { failures: 0, open_for: 1h, successes: 101 } }",
        )
        .expect("each value is what its key takes");
        let keys = keys.problems();
        let found: Vec<&str> = keys.iter().filter_map(|problem| problem.split(": ").next()).collect();
        let expected = [
            "silence",
            "backoff_initial",
            "retries",
            "breaker.open_for",
            "breaker.failures",
            "breaker.successes",
        ];
        assert_eq!(found, expected.map(|key| format!("models.fallback.{key}")));
        assert!(keys[0].contains("2m is longer than patience (1m)"), "{}", keys[0]);
    }

    #[test]
    fn what_no_key_takes_is_refused() {
        for text in ["{ patience: 10 }", "{ patience: 0s }", "{ retrys: 3 }", "{ breaker: { failures: -1 } }"]
        {
            assert!(serde_saphyr::from_str::<FallbackKeys>(text).is_err(), "{text}");
        }
    }
}
