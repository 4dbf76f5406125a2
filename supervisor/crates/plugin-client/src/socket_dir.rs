//! The directory of one process, as its sockets are reached: by descriptors, so that no path can be swapped
//! meanwhile.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags, openat};

/// The name of the inherited listening socket. It differs from those of the plugin's own sockets, which are
/// in subdirectories.
pub const LISTENING: &str = "l";

/// The private directory of one process.
#[derive(Debug)]
pub struct SocketDir {
    path: PathBuf,
    fd: OwnedFd,
    /// The directory that the plugin sees at this path, if it is another one.
    inside: Mutex<Option<Arc<OwnedFd>>>,
    /// The inherited listening socket, to connect to.
    listening: OnceLock<OwnedFd>,
}

impl SocketDir {
    /// The directory at `path`, which has no symlinks and is open as `fd`.
    #[must_use]
    pub fn new(path: PathBuf, fd: OwnedFd) -> Self {
        Self { path, fd, inside: Mutex::default(), listening: OnceLock::new() }
    }

    /// The same for a process that another supervisor started, with that supervisor's descriptors.
    #[must_use]
    pub fn adopt(path: PathBuf, fd: OwnedFd, inside: Option<OwnedFd>, listening: Option<OwnedFd>) -> Self {
        Self {
            path,
            fd,
            inside: Mutex::new(inside.map(Arc::new)),
            listening: listening.map_or_else(OnceLock::new, OnceLock::from),
        }
    }

    /// The path without symlinks.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory as the supervisor sees it.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Sets the directory that the plugin sees at this path instead of ours.
    pub fn set_inside(&self, inside: OwnedFd) {
        *self.inside.lock() = Some(Arc::new(inside));
    }

    /// Forgets that directory. A file system in memory lives as long as a descriptor of it is open.
    pub fn close_inside(&self) {
        *self.inside.lock() = None;
    }

    /// Opens a path below it as the plugin sees it, even if the directory was renamed. No symlink is
    /// followed.
    ///
    /// # Errors
    /// Why it cannot be opened; a symlink shows as ELOOP.
    pub fn open(&self, below: &Path) -> rustix::io::Result<OwnedFd> {
        let inside = self.inside.lock().clone();
        let dir = inside.as_ref().map_or(self.fd.as_fd(), |inside| inside.as_fd());
        talon_jail::open_beneath(dir, below)
    }

    /// The path of the listening socket.
    #[must_use]
    pub fn listening_path(&self) -> PathBuf {
        self.path.join(LISTENING)
    }

    /// The bound socket itself, to connect to; `None` if there is none.
    #[must_use]
    pub fn listening(&self) -> Option<BorrowedFd<'_>> {
        self.listening.get().map(AsFd::as_fd)
    }

    /// Remembers the socket that was just bound at [`Self::listening_path`].
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn remember_listening(&self) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let socket = openat(&self.fd, LISTENING, flags, Mode::empty())?;
        // It is created once for each directory, so there is no earlier one.
        let _ = self.listening.set(socket);
        Ok(())
    }

    /// Duplicates of the directory that the plugin sees and of its inherited socket, for another supervisor.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn duplicate_fds(&self) -> io::Result<(Option<OwnedFd>, Option<OwnedFd>)> {
        let inside = self.inside.lock().as_ref().map(|inside| inside.try_clone()).transpose()?;
        let listening = self.listening.get().map(OwnedFd::try_clone).transpose()?;
        Ok((inside, listening))
    }
}

/// A path under which a descriptor can be connected to.
#[must_use]
pub fn proc_fd_path(fd: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", fd.as_raw_fd()).into()
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A process's directory below `parent`, with the subdirectory `s` for its sockets.
    pub(crate) fn scratch(parent: &Path) -> Arc<SocketDir> {
        let path = parent.join("r");
        std::fs::create_dir_all(path.join("s")).unwrap();
        let fd = std::fs::File::open(&path).unwrap().into();
        Arc::new(SocketDir::new(path, fd))
    }
}
