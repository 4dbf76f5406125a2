//! Where the shells' socket is: `$XDG_RUNTIME_DIR/talon/watch.sock`, and what is beside it; and where the watcher keeps
//! what outlives it: `$XDG_STATE_HOME/talon/watch`, by default below `~/.local/state`.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// The name of the socket to which shells report.
const SHELL_SOCKET: &str = "watch.sock";

/// The name of the file with what shells show before a prompt.
const GHOSTS_FILE: &str = "ghosts";

/// The name of the file that the one watcher of a user has locked.
const LOCK_FILE: &str = "watch.lock";

/// The path of the file with what shells show before a prompt, beside their socket.
pub(crate) fn ghosts_file() -> Option<PathBuf> {
    Some(shell_socket()?.with_file_name(GHOSTS_FILE))
}

/// The path of the lock, beside the socket.
pub(crate) fn lock_file() -> Option<PathBuf> {
    Some(shell_socket()?.with_file_name(LOCK_FILE))
}

/// The path of the shells' socket; none without `XDG_RUNTIME_DIR`, since no other directory is this user's
/// alone for sure.
pub(crate) fn shell_socket() -> Option<PathBuf> {
    let directory =
        std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute())?;
    Some(directory.join("talon").join(SHELL_SOCKET))
}

/// The directory of what outlives the watcher; none without a home directory.
pub(crate) fn state_directory() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("talon/watch"))
}

/// Replaces a file of what outlives the watcher, for this user alone: whole, or not at all.
pub(crate) fn replace_own_file(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = file.with_extension("new");
    File::options().write(true).create(true).truncate(true).mode(0o600).open(&new)?.write_all(bytes)?;
    std::fs::rename(new, file)
}

/// Makes the directory of a socket, for this user alone.
pub(crate) fn make_directory(socket: &Path) -> std::io::Result<()> {
    let Some(directory) = socket.parent() else { return Ok(()) };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// The lock of the one watcher that serves a runtime directory, for as long as it lives.
#[derive(Debug)]
pub(crate) struct WatcherLock {
    _file: File,
}

impl WatcherLock {
    /// None if another watcher has it. The file stays: whoever removed it would have a lock that nobody sees.
    pub(crate) fn acquire(path: &Path) -> std::io::Result<Option<Self>> {
        make_directory(path)?;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a file is this user's.
pub(crate) fn is_own(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|file| file.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("talon").join(LOCK_FILE);
        let first = WatcherLock::acquire(&path).unwrap();
        assert!(first.is_some() && WatcherLock::acquire(&path).unwrap().is_none());
        drop(first);
        assert!(WatcherLock::acquire(&path).unwrap().is_some());
    }
}
