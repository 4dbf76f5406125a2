//! Locks the database through a file beside it. The kernel releases the lock when its holder ends, however it
//! ends.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::database_file::sibling_path;
use crate::open_error::{Holder, OpenError};

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the lock is held by its descriptor")] File);

impl Lock {
    /// Every process that opens a database takes a lock, most of them a shared one. So an exclusive opener
    /// detects them too.
    pub(super) fn take(database: &Path, exclusive: bool) -> Result<Self, OpenError> {
        let path: PathBuf = sibling_path(database, ".lock");
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

/// How often the kernel's list is searched for a holder that must be in it.
const ATTEMPTS: usize = 8;

/// More than the usual size of the list, so that one read is enough.
const LIST_BYTES: usize = 64 * 1024;

/// Finds the lock's holder in the kernel's own list; a note in a file could be out of date.
///
/// The list is consistent only within one read, at most a page: if locks are released between two reads, a
/// line moves to the part that was already read. So a single search without a result proves little.
fn holder(file: &File) -> Option<Holder> {
    let inode = file.metadata().ok()?.ino().to_string();
    let mut list = String::with_capacity(LIST_BYTES);
    let pid = (0..ATTEMPTS).find_map(|_| {
        list.clear();
        File::open("/proc/locks").and_then(|mut file| file.read_to_string(&mut list)).ok()?;
        list.lines().find_map(|line| holder_in(line, &inode))
    })?;
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    Some(Holder { pid, name: name.map(|name| name.trim_end().to_owned()).filter(|name| !name.is_empty()) })
}

/// The holder of the file's lock, if this line says so: "1: FLOCK  ADVISORY  WRITE 4711 fe:00:12345 0 EOF".
fn holder_in(line: &str, inode: &str) -> Option<u32> {
    let mut fields = line.split_whitespace().filter(|&field| field != "->").skip(1);
    let flock = fields.next() == Some("FLOCK");
    let pid: u32 = fields.nth(2)?.parse().ok()?;
    let held = fields.next()?.rsplit(':').next() == Some(inode);
    // Processes of another pid namespace are shown as 0.
    (flock && held && pid != 0).then_some(pid)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    // Promises: STATE-34
    #[test]
    fn the_holder_is_found_while_others_take_and_give_up_locks() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("state.db");
        let _held = Lock::take(&database, true).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for other in 0..2 {
                let database = directory.path().join(format!("{other}.db"));
                let over = &over;
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        Lock::take(&database, true).unwrap();
                    }
                });
            }
            // Enough attempts that a single search in two reads misses it some twenty times.
            let found = (0..2000).all(|_| {
                let refused = Lock::take(&database, true).unwrap_err();
                matches!(refused, OpenError::InUse { holder: Some(holder), .. } if holder.pid == std::process::id())
            });
            over.store(true, Ordering::Relaxed);
            assert!(found);
        });
    }
}
