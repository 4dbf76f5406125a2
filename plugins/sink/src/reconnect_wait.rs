//! How long a plugin that listens to a service waits until it tries again.

use std::time::Duration;

/// The wait after the first failure, and the longest one. A service that is back is heard within a minute.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The wait after so many failures in a row: 1 s, doubled with each, at most a minute.
#[must_use]
pub fn reconnect_wait(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_WAIT.checked_mul(doubled).map_or(MAX_WAIT, |wait| wait.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute() {
        assert_eq!([1, 2, 6, 7, 50].map(|failures| reconnect_wait(failures).as_secs()), [1, 2, 32, 60, 60]);
    }
}
