use proptest::prelude::*;

use super::*;

/// "3 retries with exponential backoff on network/timeout errors", "try next provider on rate-limit/billing
/// errors", "no retry: authentication errors, context overflow": the founding documents. That a server that
/// cannot is asked again and counted, and that a wrong request is nobody's fault but its own, is ours.
// Promises: AGENT-16
#[test]
fn the_table_of_classes_is_the_founding_one() {
    use ErrorClass::{Auth, Billing, Context, Network, RateLimit, Request, Server, Timeout};
    // class, retried, falls back, counts for the breaker
    let table = [
        (Network, true, true, true),
        (Timeout, true, true, true),
        (RateLimit, false, true, false),
        (Billing, false, true, false),
        (Server, true, true, true),
        (Auth, false, false, false),
        (Context, false, false, false),
        (Request, false, false, false),
    ];
    assert_eq!(table.map(|(class, ..)| class), CLASSES);
    for (class, retried, falls_back, counts) in table {
        let policy = policy(class);
        assert_eq!(
            (policy.retried, policy.falls_back(), policy.counts),
            (retried, falls_back, counts),
            "{class:?}"
        );
        assert_eq!(serde_json::to_value(class).expect("a word"), word(class));
    }
    assert_eq!(RetrySettings::default().retries, 3);
}

#[test]
fn waits_double_up_to_their_limit() {
    let settings = RetrySettings::default();
    let wait = |retry| settings.wait(retry, None, JitterDraw(0));
    assert_eq!(wait(1), Some(Duration::from_millis(500)));
    assert_eq!(wait(2), Some(Duration::from_millis(1000)));
    assert_eq!(wait(3), Some(Duration::from_millis(2000)));
    assert_eq!(wait(30), Some(Duration::from_secs(10)));
    assert_eq!(settings.wait(1, None, JitterDraw(u32::MAX)), Some(Duration::from_millis(550)));
}

#[test]
fn what_the_provider_asks_for_is_honoured_within_a_bound() {
    let settings = RetrySettings::default();
    let wait = |seconds| settings.wait(1, Some(Duration::from_secs(seconds)), JitterDraw(0));
    assert_eq!(wait(0), Some(Duration::from_millis(500)));
    assert_eq!(wait(7), Some(Duration::from_secs(7)));
    assert_eq!(wait(30), Some(Duration::from_secs(30)));
    assert_eq!(wait(31), None);
}

#[test]
fn what_has_enough_rests() {
    let settings = RetrySettings::default();
    let minutes = |minutes: u64| Some(Duration::from_secs(minutes * 60));
    assert_eq!(settings.rest(ErrorClass::RateLimit, None), Some(Duration::from_secs(30)));
    assert_eq!(settings.rest(ErrorClass::RateLimit, minutes(3)), minutes(3));
    assert_eq!(settings.rest(ErrorClass::RateLimit, minutes(60 * 24)), minutes(60));
    assert_eq!(settings.rest(ErrorClass::Billing, None), minutes(10));
    assert_eq!(settings.rest(ErrorClass::Network, minutes(3)), None);
}

proptest! {
    #[test]
    fn any_wait_is_bounded(
        initial in any::<Duration>(), max in any::<Duration>(), jitter in any::<Duration>(), retry: u32,
        asked in any::<Option<Duration>>(), drawn: u32,
    ) {
        // A day is far beyond what can be configured, and keeps the sums away from the end of the clock.
        let day = Duration::from_secs(86_400);
        let settings = RetrySettings {
            backoff_initial: initial.min(day), backoff_max: max.min(day), jitter: jitter.min(day), ..RetrySettings::default()
        };
        if let Some(wait) = settings.wait(retry, asked, JitterDraw(drawn)) {
            let longest = settings.backoff_max.max(settings.retry_after_max).saturating_add(settings.jitter);
            prop_assert!(wait <= longest);
            prop_assert!(wait >= asked.unwrap_or_default());
        } else {
            prop_assert!(asked > Some(settings.retry_after_max));
        }
    }
}
