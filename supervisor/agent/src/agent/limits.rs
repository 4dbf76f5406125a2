//! The configured limits, in the types of the loop, and how long an end is waited for.

use std::num::NonZeroU32;
use std::time::Duration;

use talon_agent_settings::{PICOS_PER_MICRO, TurnKeys};

use crate::budget::Budgets;

/// How long to wait for a cancelled turn, which drops its connections and writes its end. A slower one
/// continues in the background.
pub(crate) const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// The configured limits. The supervisor rejects a 0 where it is invalid; if one arrives, it counts as 1.
pub(super) fn budgets(keys: &TurnKeys) -> Budgets {
    let number = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
    Budgets {
        iterations: number(keys.iterations),
        calls_at_once: number(keys.calls_at_once),
        tool_errors: number(keys.tool_errors),
        identical_successes: number(keys.identical_successes),
        no_progress: number(keys.no_progress),
        structured_retries: keys.structured_retries,
        continuations: keys.continuations,
        clarifications: keys.clarifications,
        wall_time: keys.wall_time.get(),
        micro_usd: keys
            .cost
            .map(|cost| u64::try_from(cost.picodollars() / PICOS_PER_MICRO).unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configurations_defaults_are_those_of_the_loop() {
        assert_eq!(budgets(&TurnKeys::default()), Budgets::default());
    }
}
