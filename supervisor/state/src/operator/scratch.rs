//! The directory beside the database in which copies are made or received. It is removed after use.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use ulid::Ulid;

/// The part of such a directory's name behind the database's name.
const NAME_INFIX: &str = ".copying-";

/// A directory of mode 0700, removed when dropped.
#[derive(Debug)]
pub(crate) struct ScratchDir {
    path: PathBuf,
    /// Locked while the directory is used: the kernel releases the lock when the process ends, for whatever
    /// reason.
    _lock: File,
}

impl ScratchDir {
    /// Creates a directory beside a database.
    pub(super) fn create_beside(database: &Path) -> io::Result<Self> {
        let mut name = database.as_os_str().to_owned();
        name.push(format!("{NAME_INFIX}{}", Ulid::generate()));
        let path = PathBuf::from(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }

    /// The path of the copy in it.
    pub(super) fn copy(&self) -> PathBuf {
        self.path.join("copy.db")
    }

    /// Removes directories whose processes have ended.
    pub(crate) fn sweep(database: &Path) {
        let (Some(directory), Some(name)) = (database.parent(), database.file_name()) else { return };
        let begins = format!("{}{NAME_INFIX}", name.to_string_lossy());
        let Ok(found) = fs::read_dir(directory) else { return };
        for entry in found.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(&begins))
        {
            let unused = File::open(entry.path())
                .is_ok_and(|held| flock(&held, FlockOperation::NonBlockingLockExclusive).is_ok());
            if unused {
                remove_dir(&entry.path());
            }
        }
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        remove_dir(&self.path);
    }
}

fn remove_dir(path: &Path) {
    if let Err(error) = fs::remove_dir_all(path) {
        tracing::warn!(path = %path.display(), %error, "a copy that is not needed any more cannot be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_what_was_left_goes() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("state.db");
        let used = ScratchDir::create_beside(&database).unwrap();
        fs::write(used.copy(), "x").unwrap();
        let left = directory.path().join(format!("state.db{NAME_INFIX}left"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("copy.db"), "x").unwrap();
        ScratchDir::sweep(&database);
        assert!(used.copy().exists() && !left.exists());
        drop(used);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
