//! The delay before the next start: exponential in the number of recent deaths, capped, with equal jitter.
//!
//! Half of each delay is fixed and half is random. Full jitter would sometimes restart a crashing plugin
//! immediately; without jitter all plugins that died of one cause would restart in the same instant, again
//! and again. The delay has no state: it returns to the initial one when the deaths have left the restart
//! counter's window.

use std::time::Duration;

/// A random number from the driver: 0 selects the shortest delay of the range, `u32::MAX` the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Jitter(pub(crate) u32);

/// The delay after the `deaths`-th death within the window (from 1), at most `max`.
pub(crate) fn wait(initial: Duration, max: Duration, deaths: u32, jitter: Jitter) -> Duration {
    let doublings = deaths.saturating_sub(1).min(31);
    let whole = initial.saturating_mul(1 << doublings).min(max);
    let half = whole / 2;
    let drawn = whole.saturating_sub(half).as_nanos() * u128::from(jitter.0) / u128::from(u32::MAX);
    half.saturating_add(nanos(drawn)).min(max)
}

fn nanos(nanos: u128) -> Duration {
    const A_SECOND: u128 = 1_000_000_000;
    match (u64::try_from(nanos / A_SECOND), u32::try_from(nanos % A_SECOND)) {
        (Ok(seconds), Ok(rest)) => Duration::new(seconds, rest),
        _ => Duration::MAX,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INITIAL: Duration = Duration::from_millis(200);
    const MAX: Duration = Duration::from_secs(30);

    // Promises: LIFE-5
    #[test]
    fn it_doubles_with_each_death_up_to_the_cap() {
        let longest = |deaths| wait(INITIAL, MAX, deaths, Jitter(u32::MAX));
        assert_eq!(longest(1), Duration::from_millis(200));
        assert_eq!(longest(2), Duration::from_millis(400));
        assert_eq!(longest(4), Duration::from_millis(1600));
        assert_eq!(longest(9), MAX);
        assert_eq!(longest(u32::MAX), MAX);
    }

    // Promises: LIFE-5
    #[test]
    fn half_of_a_wait_is_drawn() {
        assert_eq!(wait(INITIAL, MAX, 1, Jitter(0)), Duration::from_millis(100));
        assert_eq!(wait(INITIAL, MAX, 2, Jitter(0)), Duration::from_millis(200));
    }

    proptest! {
        // Promises: LIFE-5
        #[test]
        fn any_wait_lies_between_half_and_the_cap(
            initial in any::<Duration>(), max in any::<Duration>(), deaths: u32, jitter: u32,
        ) {
            let shortest = wait(initial, max, deaths, Jitter(0));
            let drawn = wait(initial, max, deaths, Jitter(jitter));
            let longest = wait(initial, max, deaths, Jitter(u32::MAX));
            prop_assert!(shortest <= drawn && drawn <= longest && longest <= max);
        }
    }
}
