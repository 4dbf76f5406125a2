//! Why an instance is in its state, in texts for an operator that end with what to do next.

use std::time::Duration;

use talon_sanitize::{Sanitized, sanitized};

use talon_plugin_config::name::PluginName;

/// Reasons for which processes end other than by a stop: a closed set, used in metrics.
pub(crate) mod restart_reason {
    /// An operator requested a new process.
    pub(crate) const REQUESTED: &str = "requested";
    /// It did not become ready.
    pub(crate) const START_FAILED: &str = "start_failed";
    /// It may not be started in its current form.
    pub(crate) const REFUSED: &str = "refused";
    /// It exited, or was killed from outside.
    pub(crate) const EXITED: &str = "exited";
    /// It used more memory than it may.
    pub(crate) const OUT_OF_MEMORY: &str = "out_of_memory";
    /// It failed too many health checks.
    pub(crate) const HEALTH_CHECKS: &str = "health_checks";
    /// It sent HTTP/2 control frames without end.
    pub(crate) const FRAME_FLOOD: &str = "frame_flood";
    /// It ignored a call's deadline.
    pub(crate) const IGNORED_DEADLINE: &str = "ignored_deadline";
}

/// The longest stored cause, in bytes: a sentence or two. A longer one is truncated.
const MAX_CAUSE_BYTES: usize = 2048;

/// Why an instance is in its state, for states that need a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The operator stopped it.
    StoppedByOperator,
    /// The operator asked for a restart.
    PlannedRestart,
    /// It died and will be started again.
    Died { deaths: u32, allowed: u32, cause: Sanitized },
    /// It could not start because something else is away, and is tried again.
    Outage { cause: Sanitized, wait: Duration },
    /// It failed its last health checks, but not yet too many.
    FailedChecks { failures: u32, threshold: u32, cause: Sanitized },
    /// It died more often than allowed.
    DiedTooOften { deaths: u32, window: Duration, cause: Sanitized },
    /// It died, and its configuration says not to start it again.
    RestartsOff { cause: Sanitized },
    /// It may not be started in its current form.
    Refused { cause: Sanitized },
}

impl Reason {
    /// The text for `talon status` and for refused calls.
    pub(crate) fn describe(&self, plugin: &PluginName) -> Sanitized {
        match self {
            Self::StoppedByOperator => {
                sanitized!("stopped on request; `talon plugin start {}` starts it", plugin)
            }
            Self::PlannedRestart => "restarted by an operator".into(),
            Self::Died { deaths, allowed, cause } => {
                sanitized!("{}; restart {} of {} follows", cause, deaths, allowed)
            }
            Self::Outage { cause, wait } => sanitized!(
                "{}; it is tried again in {} s, for as long as that lasts; `talon plugin start {}` tries at once",
                cause,
                wait.as_secs().max(1),
                plugin
            ),
            Self::FailedChecks { failures, threshold, cause } => {
                sanitized!(
                    "failed {} of {threshold} health checks in a row: {}; it is restarted at {threshold}",
                    failures,
                    cause,
                    threshold = threshold,
                )
            }
            Self::DiedTooOften { deaths, window, cause } => sanitized!(
                "died {} {} within {}; last: {}; see `talon plugin logs {plugin}`, then `talon plugin start {plugin}`",
                deaths,
                if *deaths == 1 { "time" } else { "times" },
                format_duration(*window),
                cause,
                plugin = plugin,
            ),
            Self::RestartsOff { cause } => sanitized!(
                "{}, and restart_on_failure is off; see `talon plugin logs {plugin}`, then `talon plugin start {plugin}`",
                cause,
                plugin = plugin,
            ),
            Self::Refused { cause } => {
                sanitized!("refused to start: {}; then `talon plugin start {}`", cause, plugin)
            }
        }
    }
}

impl Reason {
    /// The cause, without its consequences.
    pub(crate) fn cause(&self) -> Option<&Sanitized> {
        match self {
            Self::StoppedByOperator | Self::PlannedRestart => None,
            Self::Died { cause, .. }
            | Self::Outage { cause, .. }
            | Self::FailedChecks { cause, .. }
            | Self::DiedTooOften { cause, .. }
            | Self::RestartsOff { cause }
            | Self::Refused { cause } => Some(cause),
        }
    }
}

/// A cause of bounded length.
pub(crate) fn truncate(cause: Sanitized) -> Sanitized {
    cause.cut(MAX_CAUSE_BYTES)
}

/// A duration for people: "5 min", "90 s", "250 ms".
pub(crate) fn format_duration(length: Duration) -> Sanitized {
    let (seconds, millis) = (length.as_secs(), length.subsec_millis());
    if seconds > 0 && millis == 0 && seconds.is_multiple_of(60) {
        sanitized!("{} min", seconds / 60)
    } else if seconds > 0 && millis == 0 {
        sanitized!("{} s", seconds)
    } else {
        sanitized!("{} ms", length.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: LIFE-10
    #[test]
    fn a_failed_plugin_says_what_to_do_next() {
        let reason = Reason::DiedTooOften {
            deaths: 4,
            window: Duration::from_secs(300),
            cause: "killed by SIGSEGV".into(),
        };
        assert_eq!(
            reason.describe(&PluginName::new("x").unwrap()),
            "died 4 times within 5 min; last: killed by SIGSEGV; see `talon plugin logs x`, then `talon plugin start x`"
        );
    }

    #[test]
    fn spans_read_as_people_say_them() {
        assert_eq!(format_duration(Duration::from_secs(90)), "90 s");
        assert_eq!(format_duration(Duration::from_millis(1500)), "1500 ms");
        assert_eq!(format_duration(Duration::from_secs(120)), "2 min");
    }

    #[test]
    fn a_long_cause_is_cut_between_characters() {
        let cut = truncate(talon_sanitize::Raw::from("ä".repeat(5000)).line());
        assert!(cut.len() <= MAX_CAUSE_BYTES + '…'.len_utf8());
        assert!(cut.ends_with('…'));
    }
}
