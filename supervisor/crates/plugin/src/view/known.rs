//! Digests of programs that were read before and have not changed since.
//!
//! To read a program of a few MiB costs a start as much as its whole jail. So what was found is remembered by what the
//! kernel says of the file, its ctime first of all: any change of the content moves that on, and nobody can set it back,
//! as it is possible with the time of the last modification. Where it would not tell, the file is read at every start:
//!
//! | when | why |
//! |---|---|
//! | it changed within the last [`SETTLED`] | the clock behind a ctime stands still for some milliseconds at a time, so that one more change could have the same |
//! | it lies elsewhere than on one of [`TELLING`] | a network's or a program's file system says what it likes, and one in memory does not see what is written through a mapping |
//! | what was written through a mapping cannot be written back | of a page only the first such write moves the ctime on, until it was written back. So that is done before the file is read |
//! | it changed while it was read | what was found is of no one state of it |
//!
//! What lies between this and the execution is what it is after a reading: a file that is executed cannot be written to.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{fdatasync, fstat, fstatfs};

use super::digest;

/// How long ago the last change has to be. A minute is thousands of times what a clock stands still for. It is also longer than
/// the kernel keeps what was written from the disk (30 s and a bit), so that no start waits for that.
const SETTLED: Duration = Duration::from_secs(60);

/// Local file systems whose files have a ctime that moves on with each write, also through a mapping: ext2 to ext4, XFS, Btrfs,
/// F2FS (linux/magic.h).
const TELLING: [u32; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

/// The most that are remembered: eight for each of five hundred plugins, at some 150 bytes. One more, and all are forgotten.
const MOST: usize = 4096;

/// What was found so far.
#[derive(Debug)]
pub(crate) struct Known {
    digests: Mutex<HashMap<Print, Arc<str>>>,
    settled: Duration,
}

/// What the kernel says of a file. Two contents of one file never have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Print {
    device: u64,
    inode: u64,
    bytes: i64,
    /// Seconds and nanoseconds.
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Default for Known {
    fn default() -> Self {
        Self { digests: Mutex::default(), settled: SETTLED }
    }
}

impl Known {
    /// The SHA-256 of a file's content, as [`digest::of_file`] gives it. Blocking: it may have to be read.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn of(&self, file: &File) -> io::Result<String> {
        let before = Print::of(file)?;
        if let Some(known) = self.digests().get(&before) {
            return Ok(known.to_string());
        }
        // Before it is read: what is written through a mapping from then on shows.
        let tells = self.is_settled(&before) && is_telling(file) && fdatasync(file).is_ok();
        let digest = digest::of_file(file)?;
        if tells && Print::of(file)? == before {
            let mut digests = self.digests();
            if digests.len() >= MOST {
                digests.clear();
            }
            digests.insert(before, digest.as_str().into());
        }
        Ok(digest)
    }

    fn is_settled(&self, print: &Print) -> bool {
        let (seconds, nanoseconds) = print.changed;
        let Ok(seconds) = u64::try_from(seconds) else { return false };
        let changed = Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds);
        // Of that clock, since a ctime is of it. Set back, it makes a time one to come, and the file is read again; set forward, it
        // gives later changes later times.
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .ok()
            .and_then(|now| now.checked_sub(changed))
            .is_some_and(|ago| ago >= self.settled)
    }

    fn digests(&self) -> MutexGuard<'_, HashMap<Print, Arc<str>>> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Print {
    fn of(file: &File) -> io::Result<Self> {
        let stat = fstat(file)?;
        Ok(Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            bytes: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        })
    }
}

/// Whether it lies where a ctime can be relied on.
fn is_telling(file: &File) -> bool {
    let kind = fstatfs(file).ok().and_then(|fs| u32::try_from(fs.f_type).ok());
    kind.is_some_and(|kind| TELLING.contains(&kind))
}

#[cfg(test)]
#[path = "known_tests.rs"]
mod tests;
