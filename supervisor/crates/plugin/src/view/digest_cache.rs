//! Caches digests of programs that have not changed since they were read.
//!
//! Reading a program of a few MiB takes as long as building its jail. So digests are cached under the file's
//! metadata, above all its ctime: every change of the content updates it, and unlike the mtime it cannot be
//! set back. Where the ctime is not reliable, the file is read at every start:
//!
//! | condition | reason |
//! |---|---|
//! | it changed within the last [`MIN_AGE`] | the clock behind the ctime advances in steps of some milliseconds, so another change could have the same ctime |
//! | it is on a file system not among [`RELIABLE_CTIME_FILE_SYSTEMS`] | network and FUSE file systems report any ctime they like, and file systems in memory miss writes through a mapping |
//! | pages written through a mapping cannot be written back | only the first such write to a page updates the ctime until write-back; so the file is written back before it is read |
//! | it changed while it was read | the digest may mix two states of the file |
//!
//! Between this check and the execution the risk is the same as after reading the file: a file that is being
//! executed cannot be written to.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustix::fs::{fdatasync, fstat, fstatfs};

use talon_plugin_config::files::digest;

/// The minimum time since the last change. A minute is thousands of clock steps. It also exceeds the kernel's
/// write-back delay (a little over 30 s), so no start waits for write-back.
const MIN_AGE: Duration = Duration::from_secs(60);

/// The magic numbers of local file systems that update the ctime with each write, also through a mapping:
/// ext2 to ext4, XFS, Btrfs, F2FS (linux/magic.h).
const RELIABLE_CTIME_FILE_SYSTEMS: [u32; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

/// The most cached digests: eight for each of five hundred plugins, at about 150 bytes. A full cache is
/// cleared.
const MAX_CACHED: usize = 4096;

/// The cached digests.
#[derive(Debug)]
pub(crate) struct DigestCache {
    digests: Mutex<HashMap<FileStamp, Arc<str>>>,
    min_age: Duration,
}

/// The metadata of a file. It is different for any two contents of the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FileStamp {
    device: u64,
    inode: u64,
    bytes: i64,
    /// Seconds and nanoseconds.
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Default for DigestCache {
    fn default() -> Self {
        Self { digests: Mutex::default(), min_age: MIN_AGE }
    }
}

impl DigestCache {
    /// The SHA-256 of a file's content, like [`digest::of_file`]. Blocking, because it may read the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn digest(&self, file: &File) -> io::Result<String> {
        let before = FileStamp::of(file)?;
        if let Some(known) = self.digests.lock().get(&before) {
            return Ok(known.to_string());
        }
        // Before reading: later writes through a mapping then update the ctime.
        let tells = self.is_old_enough(&before) && has_reliable_ctime(file) && fdatasync(file).is_ok();
        let digest = digest::of_file(file)?;
        if tells && FileStamp::of(file)? == before {
            let mut digests = self.digests.lock();
            if digests.len() >= MAX_CACHED {
                digests.clear();
            }
            digests.insert(before, digest.as_str().into());
        }
        Ok(digest)
    }

    fn is_old_enough(&self, print: &FileStamp) -> bool {
        let (seconds, nanoseconds) = print.changed;
        let Ok(seconds) = u64::try_from(seconds) else { return false };
        let changed = Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds);
        // The system clock, because ctimes come from it. If it is set back, the ctime lies in the future and
        // the file is read again; if it is set forward, later changes get later ctimes.
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .ok()
            .and_then(|now| now.checked_sub(changed))
            .is_some_and(|ago| ago >= self.min_age)
    }
}

impl FileStamp {
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

/// Whether the file is on a file system with reliable ctimes.
fn has_reliable_ctime(file: &File) -> bool {
    let kind = fstatfs(file).ok().and_then(|fs| u32::try_from(fs.f_type).ok());
    kind.is_some_and(|kind| RELIABLE_CTIME_FILE_SYSTEMS.contains(&kind))
}

#[cfg(test)]
#[path = "digest_cache_tests.rs"]
mod tests;
