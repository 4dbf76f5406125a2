//! Converts `models.fallback` to the chain's settings.

use talon_agent_settings::{BreakerKeys, FallbackKeys};

use super::breaker::BreakerSettings;
use super::fallback::ChainSettings;
use super::retry::RetrySettings;

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
