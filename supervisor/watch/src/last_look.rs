//! Until when everything was looked at, in a file. What was saved while no watcher ran, or right before it was killed,
//! is looked at after the next start.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::runtime_dir::replace_own_file;

/// How much earlier than now is written. A minute: so long a change may be on its way, in a directory that is large or
/// never rests. What is found again is known to the agent.
const MARGIN_SECONDS: i64 = 60;

/// The least time between two writes, which follow events alone: at rest nothing is written.
const APART: Duration = Duration::from_secs(10);

const FILE: &str = "looked";

/// Whether everything was looked at once, and what an earlier watcher had no time for was told. Clones are of the same look.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstLook(Arc<AtomicBool>);

impl FirstLook {
    /// All that it found was told.
    pub(crate) fn end(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The file.
#[derive(Debug)]
pub(crate) struct LastLook {
    file: PathBuf,
    written: Option<Instant>,
    is_due: bool,
    /// Whether no earlier watcher wrote it, so that the first look tells nothing.
    is_first: bool,
}

impl LastLook {
    /// In the directory of what outlives the watcher; with what an earlier one wrote, in seconds since 1970.
    pub(crate) fn open(directory: &Path) -> (Self, Option<i64>) {
        let file = directory.join(FILE);
        let before = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        // What an earlier one had no time for is looked at first.
        let is_first = before.is_none();
        (Self { file, written: None, is_due: is_first, is_first }, before)
    }

    /// Something happened, so that the file is out of date.
    pub(crate) fn happened(&mut self) {
        self.is_due = true;
    }

    /// Everything that was told is known. Until the first look is over that is not everything that happened: the file stays, so that
    /// the next watcher looks again. `first_look_over` is of a moment before the last of it was known. Whoever cannot write it looks at
    /// more after the next start, or at less if there is no file.
    pub(crate) fn rests(&mut self, first_look_over: bool, now: Instant, unix_seconds: i64) {
        let is_apart = self.written.is_none_or(|at| now.saturating_duration_since(at) >= APART);
        let is_beginning = self.is_first && self.written.is_none();
        if self.is_due && is_apart && (first_look_over || is_beginning) {
            (self.written, self.is_due) = (Some(now), false);
            let text = format!("{}\n", unix_seconds - MARGIN_SECONDS);
            let _ = replace_own_file(&self.file, text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: SHADOW-42
    #[test]
    fn it_is_written_after_events_and_seldom() {
        let dir = tempfile::tempdir().unwrap();
        let (mut look, before) = LastLook::open(dir.path());
        assert_eq!(before, None);
        let (start, read) = (Instant::now(), || LastLook::open(dir.path()).1);
        look.rests(false, start, 1_000);
        assert_eq!(read(), Some(940));
        look.rests(true, start + APART, 2_000);
        assert_eq!(read(), Some(940), "nothing happened");
        look.happened();
        look.rests(true, start + APART / 2, 3_000);
        assert_eq!(read(), Some(940), "it was written just now");
        look.rests(true, start + APART, 4_000);
        assert_eq!(read(), Some(3_940));
        std::fs::write(dir.path().join(FILE), "soon").unwrap();
        assert_eq!(read(), None);
    }

    // Promises: SHADOW-42
    #[test]
    fn it_stays_until_what_an_earlier_watcher_had_no_time_for_is_told() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), "500\n").unwrap();
        let (mut look, before) = LastLook::open(dir.path());
        assert_eq!(before, Some(500));
        let (start, read) = (Instant::now(), || LastLook::open(dir.path()).1);
        let first_look = FirstLook::default();
        // A command of a shell comes before the first look ends.
        look.happened();
        look.rests(first_look.is_over(), start, 1_000);
        look.rests(first_look.is_over(), start + 2 * APART, 2_000);
        assert_eq!(read(), Some(500), "a kill now has the next watcher look again");
        first_look.clone().end();
        look.rests(first_look.is_over(), start + 3 * APART, 3_000);
        assert_eq!(read(), Some(2_940));
    }
}
