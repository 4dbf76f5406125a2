//! Until when everything was looked at, in a file. What was saved while no watcher ran, or right before it was killed,
//! is looked at after the next start.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How much earlier than now is written. A minute: so long a change may be on its way, in a directory that is large or
/// never rests. What is found again is known to the agent.
const MARGIN_SECONDS: i64 = 60;

/// The least time between two writes, which follow events alone: at rest nothing is written.
const APART: Duration = Duration::from_secs(10);

const FILE: &str = "looked";

/// The file.
#[derive(Debug)]
pub(crate) struct LastLook {
    file: PathBuf,
    written: Option<Instant>,
    is_due: bool,
}

impl LastLook {
    /// In the directory of what outlives the watcher; with what an earlier one wrote, in seconds since 1970.
    pub(crate) fn open(directory: &Path) -> (Self, Option<i64>) {
        let file = directory.join(FILE);
        let before = std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
        // What an earlier one had no time for is looked at first.
        (Self { file, written: None, is_due: before.is_none() }, before)
    }

    /// Something happened, so that the file is out of date.
    pub(crate) fn happened(&mut self) {
        self.is_due = true;
    }

    /// Everything that happened was looked at. Whoever cannot write it looks at more after the next start, or at less if
    /// there is no file.
    pub(crate) fn rests(&mut self, now: Instant, unix_seconds: i64) {
        let is_apart = self.written.is_none_or(|at| now.saturating_duration_since(at) >= APART);
        if self.is_due && is_apart {
            (self.written, self.is_due) = (Some(now), false);
            let _ = self.write(unix_seconds - MARGIN_SECONDS);
        }
    }

    fn write(&self, unix_seconds: i64) -> std::io::Result<()> {
        let new = self.file.with_extension("new");
        let mut out =
            std::fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        writeln!(out, "{unix_seconds}")?;
        std::fs::rename(new, &self.file)
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
        look.rests(start, 1_000);
        assert_eq!(read(), Some(940));
        look.rests(start + APART, 2_000);
        assert_eq!(read(), Some(940), "nothing happened");
        look.happened();
        look.rests(start + APART / 2, 3_000);
        assert_eq!(read(), Some(940), "it was written just now");
        look.rests(start + APART, 4_000);
        assert_eq!(read(), Some(3_940));
        std::fs::write(dir.path().join(FILE), "soon").unwrap();
        assert_eq!(read(), None);
    }
}
