//! Who has the database: a lock on a file beside it, which the kernel releases when its holder ends, however that is.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::place::beside;
use crate::open::{Holder, OpenError};

/// Held as long as it is not dropped.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the lock is held by its descriptor")] File);

impl Lock {
    /// Everybody who opens a database takes a lock, most of them a shared one: so whoever wants it alone sees them too.
    pub(super) fn take(database: &Path, exclusive: bool) -> Result<Self, OpenError> {
        let path: PathBuf = beside(database, ".lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(OpenError::file(&path, "the lock file cannot be opened"))?;
        let how = if exclusive {
            FlockOperation::NonBlockingLockExclusive
        } else {
            FlockOperation::NonBlockingLockShared
        };
        match flock(&file, how) {
            Ok(()) => Ok(Self(file)),
            Err(Errno::WOULDBLOCK) => {
                Err(OpenError::InUse { path: database.to_owned(), holder: holder(&file) })
            }
            Err(errno) => Err(OpenError::file(&path, "the lock cannot be taken")(errno.into())),
        }
    }
}

/// The kernel's own list knows who holds a lock; a note in the file could be out of date.
fn holder(file: &File) -> Option<Holder> {
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| {
        // "1: FLOCK  ADVISORY  WRITE 4711 fe:00:12345 0 EOF"
        let mut fields = line.split_whitespace().filter(|&field| field != "->").skip(1);
        let flock = fields.next() == Some("FLOCK");
        let pid: u32 = fields.nth(2)?.parse().ok()?;
        let held = fields.next()?.rsplit(':').next() == Some(inode.as_str());
        // Processes of another namespace are shown as 0.
        (flock && held && pid != 0).then_some(pid)
    })?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    Some(Holder { pid, name: name.map(|name| name.trim_end().to_owned()).filter(|name| !name.is_empty()) })
}
