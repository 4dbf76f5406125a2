//! When the next attempt is.

use std::time::Duration;

use talon_extensions::NotificationEntry;
use talon_store::Timestamp;

/// The wait after the first failure. 5 s: most of what fails once works a moment later.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// The longest wait. 15 min: a sink that is back after a night has everything a quarter of an hour later.
const MAX_WAIT: Duration = Duration::from_secs(15 * 60);
/// The longest pause of all of an entry's notifications while its sink fails. A minute: one attempt a minute does
/// not hurt it, and shows soon that it works again.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// By how much of itself a wait is longer, at most, so that what failed together is not tried again together.
const JITTER: f64 = 0.2;

/// What comes after an attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another attempt at a time.
    Retry(Timestamp),
    /// None.
    GiveUp,
}

/// What comes after the attempt with this number, which failed. `random` is between 0 and 1.
pub(super) fn next(
    entry: &NotificationEntry,
    attempt: u32,
    due_at: Timestamp,
    now: Timestamp,
    retry_after: Option<Duration>,
    random: f64,
) -> Next {
    let end = due_at.as_millis().saturating_add(millis(entry.give_up_after.get()));
    if now.as_millis() >= end || entry.retries.is_some_and(|retries| attempt > retries) {
        return Next::GiveUp;
    }
    let wait = wait(attempt, MAX_WAIT).mul_f64(1.0 + JITTER * random.clamp(0.0, 1.0));
    let at = now.as_millis().saturating_add(millis(wait.max(retry_after.unwrap_or_default())));
    // The last attempt is not later than the end of all attempts.
    Next::Retry(Timestamp::from_millis(at.min(end)))
}

/// How long an entry rests after so many failures in a row.
pub(super) fn pause(failures: u32) -> Duration {
    if failures == 0 { Duration::ZERO } else { wait(failures, MAX_PAUSE) }
}

fn wait(attempt: u32, most: Duration) -> Duration {
    let doubled = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_WAIT.checked_mul(doubled).map_or(most, |wait| wait.min(most))
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
    }

    #[test]
    fn waits_double_up_to_a_quarter_of_an_hour() {
        let entry = NotificationEntry::new(&[], "a.b");
        let wait = |attempt, after: Option<u64>| {
            let Next::Retry(at) =
                next(&entry, attempt, self::at(0), self::at(100), after.map(Duration::from_secs), 0.0)
            else {
                panic!("it is tried again");
            };
            (at.as_millis() - self::at(100).as_millis()) / 1000
        };
        let waits = [1, 2, 3, 8, 9, 100].map(|attempt| wait(attempt, None));
        assert_eq!(waits, [5, 10, 20, 640, 900, 900]);
        assert_eq!((wait(1, Some(60)), wait(8, Some(60))), (60, 640));
        assert_eq!([0, 1, 2, 4, 5, 40].map(|n| pause(n).as_secs()), [0, 5, 10, 40, 60, 60]);
    }

    #[test]
    fn so_many_retries_or_so_long_and_no_more() {
        let mut entry = NotificationEntry::new(&[], "a.b");
        entry.retries = Some(2);
        let next = |attempt, now| super::next(&entry, attempt, at(0), at(now), None, 0.5);
        assert!(matches!(next(2, 1), Next::Retry(_)));
        assert_eq!(next(3, 1), Next::GiveUp);
        let day = 24 * 3600;
        assert_eq!(next(1, day - 1), Next::Retry(at(day)), "once more at the end");
        assert_eq!(next(1, day), Next::GiveUp);
    }

    proptest! {
        #[test]
        fn the_next_attempt_is_later_and_in_time(
            attempt in any::<u32>(), now in 0_i64..86_399, random in 0.0_f64..1.0, after in prop::option::of(0_u64..3600),
        ) {
            let entry = NotificationEntry::new(&[], "a.b");
            let next = super::next(&entry, attempt, at(0), at(now), after.map(Duration::from_secs), random);
            let Next::Retry(time) = next else { panic!("it is tried again") };
            prop_assert!(time > at(now) && time <= at(86_400));
            let least = i64::try_from(after.unwrap_or_default()).expect("short").max(5).min(86_400 - now);
            prop_assert!(time >= at(now + least));
        }
    }
}
