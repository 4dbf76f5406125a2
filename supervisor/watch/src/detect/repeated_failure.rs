//! The same command, failing again and again.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::path::Path;
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;

/// How often in a row a command has to fail. 3: twice is a typing error that was looked at; a person who
/// starts the same a third time is stuck.
const FAILURES: u32 = 3;

/// Failures that lie further apart are no row. 10 minutes: a long test run and a look at its output.
const APART: Duration = Duration::from_secs(600);

/// How many commands are remembered; the one that failed longest ago is forgotten for a new one.
const COMMANDS: usize = 256;

/// Exit codes of a person, and not of a failure: ended by SIGINT, SIGPIPE, SIGTERM, or put into the
/// background.
const BY_PERSON: [i32; 4] = [130, 141, 143, 148];

struct Row {
    failures: u32,
    last: Instant,
}

/// Remembers failures, by directory and command.
#[derive(Default)]
pub(crate) struct RepeatedFailures {
    rows: HashMap<u64, Row>,
}

impl RepeatedFailures {
    /// A command ended; returns how often it failed in a row where that is worth saying: at the third
    /// failure, and not again before it succeeded.
    pub(crate) fn observe(
        &mut self,
        directory: &Path,
        command: &str,
        exit_code: i32,
        now: Instant,
    ) -> Option<u32> {
        let key = key(directory, command);
        if exit_code == 0 {
            self.rows.remove(&key);
            return None;
        }
        if BY_PERSON.contains(&exit_code) {
            return None;
        }
        if !self.rows.contains_key(&key) && self.rows.len() >= COMMANDS {
            let oldest = self.rows.iter().min_by_key(|(_, row)| row.last).map(|(key, _)| *key);
            oldest.map(|oldest| self.rows.remove(&oldest));
        }
        let row = self.rows.entry(key).or_insert(Row { failures: 0, last: now });
        if now.saturating_duration_since(row.last) > APART {
            row.failures = 0;
        }
        row.failures = row.failures.saturating_add(1);
        row.last = now;
        (row.failures == FAILURES).then_some(row.failures)
    }
}

/// Of the command's words: blanks make no other command.
fn key(directory: &Path, command: &str) -> u64 {
    let words: Vec<&str> = command.split_whitespace().collect();
    FixedState::default().hash_one((directory, words))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn observe(failures: &mut RepeatedFailures, command: &str, code: i32, at: Instant) -> Option<u32> {
        failures.observe(Path::new("/w"), command, code, at)
    }

    // Promises: SHADOW-59
    #[test]
    fn the_third_failure_in_a_row_is_told_once() {
        let (mut failures, now) = (RepeatedFailures::default(), Instant::now());
        let told: Vec<_> = (0..5).map(|_| observe(&mut failures, "make  all", 2, now)).collect();
        assert_eq!(told, [None, None, Some(3), None, None]);
        assert_eq!(observe(&mut failures, "make all", 0, now), None);
        let told: Vec<_> = (0..3).map(|_| observe(&mut failures, "make all", 1, now)).collect();
        assert_eq!(told, [None, None, Some(3)]);
    }

    // Promises: SHADOW-59
    #[test]
    fn interrupted_commands_and_ones_far_apart_do_not_count() {
        let (mut failures, mut now) = (RepeatedFailures::default(), Instant::now());
        assert!((0..9).all(|_| observe(&mut failures, "make", 130, now).is_none()));
        for _ in 0..9 {
            now += APART * 2;
            assert_eq!(observe(&mut failures, "make", 1, now), None);
        }
    }

    proptest! {
        // Promises: SHADOW-59
        #[test]
        fn memory_is_bounded_and_a_success_ends_every_row(codes in prop::collection::vec((0i32..3, 0u32..600), 0..900)) {
            let (mut failures, now) = (RepeatedFailures::default(), Instant::now());
            let mut rows = HashMap::new();
            let mut is_exact = true;
            for (code, command) in codes {
                let told = observe(&mut failures, &command.to_string(), code, now);
                prop_assert!(failures.rows.len() <= COMMANDS);
                is_exact &= rows.len() < COMMANDS;
                let row = rows.entry(command).or_insert(0);
                *row = if code == 0 { 0 } else { *row + 1 };
                if is_exact {
                    prop_assert_eq!(told.is_some(), *row == FAILURES);
                }
            }
        }
    }
}
