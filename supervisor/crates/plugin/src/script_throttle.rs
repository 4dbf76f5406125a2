//! What a plugin says of its scripts, and how often that is taken up.

use std::time::Duration;

use talon_proto::notices::ScriptStatus;
use tokio::time::Instant;

use crate::scripts::{MAX_SCRIPTS, has_valid_name};

/// How many statuses are taken up at once: all scripts, when the plugin starts.
const BURST: u32 = 256;
/// After how long one more may be taken up. 250 milliseconds: each may become an event and a record of the audit log, and nobody
/// saves files faster for long. What comes meanwhile waits, and the latest status of each script counts.
const INTERVAL: Duration = Duration::from_millis(250);

/// Merges the statuses of one process's scripts.
#[derive(Debug)]
pub(crate) struct ScriptThrottle {
    /// The latest status of each script, in the order in which they began to wait. At most [`MAX_SCRIPTS`].
    pending: Vec<ScriptStatus>,
    allowed: u32,
    /// When `allowed` was counted last.
    counted: Option<Instant>,
}

impl Default for ScriptThrottle {
    fn default() -> Self {
        Self { pending: Vec::new(), allowed: BURST, counted: None }
    }
}

impl ScriptThrottle {
    /// Takes in a status; returns whether it was one, and there was room for it.
    pub(crate) fn record(&mut self, status: ScriptStatus) -> bool {
        if !has_valid_name(&status) {
            return false;
        }
        let has_room = self.pending.len() < MAX_SCRIPTS;
        match self.pending.iter_mut().find(|waiting| waiting.name == status.name) {
            Some(waiting) => *waiting = status,
            None if has_room => self.pending.push(status),
            None => return false,
        }
        true
    }

    /// When the next status may be taken up; `None` if none waits.
    pub(crate) fn due(&self, now: Instant) -> Option<Instant> {
        if self.pending.is_empty() {
            return None;
        }
        let counted = self.counted.unwrap_or(now);
        Some(if self.allowed > 0 { now } else { counted + INTERVAL })
    }

    /// Takes the statuses that may be taken up now.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<ScriptStatus> {
        let counted = *self.counted.get_or_insert(now);
        let further = (now - counted).as_millis() / INTERVAL.as_millis();
        let further = u32::try_from(further).unwrap_or(BURST).min(BURST);
        if further > 0 {
            self.allowed = (self.allowed + further).min(BURST);
            self.counted = Some(if self.allowed == BURST { now } else { counted + INTERVAL * further });
        }
        let size = self.pending.len().min(usize::try_from(self.allowed).unwrap_or(usize::MAX));
        self.allowed -= u32::try_from(size).unwrap_or(self.allowed);
        self.pending.drain(..size).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(name: &str, loads: u64) -> ScriptStatus {
        ScriptStatus { name: name.to_owned(), loads, ..ScriptStatus::default() }
    }

    // Promises: LUA-70
    #[test]
    fn all_scripts_come_at_once_and_later_ones_at_a_bounded_rate_with_the_latest_of_each() {
        let (mut throttle, mut now) = (ScriptThrottle::default(), Instant::now());
        assert_eq!(throttle.due(now), None);
        for number in 0..MAX_SCRIPTS {
            assert!(throttle.record(status(&format!("s{number}"), 1)));
        }
        assert!(!throttle.record(status("more", 1)), "there is no room");
        assert!(!throttle.record(status("no name", 1)));
        assert_eq!(throttle.take_due(now).len(), MAX_SCRIPTS);
        let mut taken = 0;
        for step in 0..400 {
            for name in ["a", "b"] {
                assert!(throttle.record(status(name, step)));
            }
            let due = throttle.take_due(now);
            assert!(due.iter().all(|status| status.loads == step), "the latest counts");
            taken += due.len();
            now += INTERVAL / 40;
        }
        assert_eq!(taken, 9, "one in each interval but the first");
        assert_eq!(throttle.take_due(now + INTERVAL * 2).len(), 2, "none is lost");
    }

    #[test]
    fn one_that_changes_all_the_time_keeps_no_other_waiting() {
        let (mut throttle, mut now) = (ScriptThrottle { allowed: 0, ..Default::default() }, Instant::now());
        assert!(throttle.take_due(now).is_empty());
        assert!(throttle.record(status("a", 0)));
        assert!(throttle.record(status("b", 0)));
        let mut names = Vec::new();
        for _ in 0..2 {
            now += INTERVAL;
            names.extend(throttle.take_due(now).into_iter().map(|status| status.name));
            assert!(throttle.record(status("a", 1)));
        }
        assert_eq!(names, ["a", "b"]);
    }
}
