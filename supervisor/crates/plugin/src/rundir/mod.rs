//! The runtime directory: one private directory for each process, one supervisor for all of them.
//!
//! ```text
//! <runtime_dir>/                0711, ours
//!   supervisor.lock             held as long as the supervisor lives; its text is our pid
//!   p/                          0711, ours
//!     1f/                       0750, ours; its group is the plugin's
//!       l  x  k  c              ours: sockets and a file that we make for it, see `listen`
//!       s/  t/  h/              0700, the plugin's: socket, TMPDIR, HOME
//! ```
//!
//! A jailed plugin sees another directory at the same path: a file system in memory with `s`, `t` and `h`
//! that exists only for this plugin. We hold a descriptor of it ([`SocketDir::set_inside`]). So the paths
//! that a plugin prints are the same with and without a jail. Our own directory contains `s`, `t` and `h`
//! only for plugins without a jail.

mod listen;
mod lock;
mod prepare;
mod remove;

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid, fchmod, fchown, mkdirat, openat, statat};
use rustix::io::Errno;
use talon_jail::Identity;
use talon_plugin_client::socket_dir::SocketDir;

pub(crate) use lock::{DirLock, LockError};
pub(crate) use prepare::{impassable_ancestor, prepare_data_dir, prepare_dir};
pub(crate) use remove::remove_tree;

use crate::settings::SetupError;
use talon_sanitize::Raw;

/// The longest `sockaddr_un.sun_path`, without its terminating NUL.
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// The longest socket path that a plugin creates below the runtime directory: OpenTalon's, with ten digits of
/// a temporary name from Go, in the directory that a bridge creates for it. The paths of go-plugin and our
/// SDK are shorter.
const LONGEST_SOCKET: &str = "/p/ffffff/t/0/opentalon-plugin-4294967295/plugin.sock";

/// The longest path of a runtime directory.
pub(crate) const MAX_RUNTIME_DIR_BYTES: usize = MAX_SOCKET_PATH_BYTES - LONGEST_SOCKET.len();

/// Private directories are numbered with up to six hexadecimal digits; after the last number they start again
/// at the first.
const LAST_NUMBER: u32 = 0xff_ffff;

const LOCK_FILE: &str = "supervisor.lock";
const PLUGINS_DIR: &str = "p";
pub(crate) const SOCKET_DIR: &str = "s";
pub(crate) const TMP_DIR: &str = "t";
pub(crate) const HOME_DIR: &str = "h";

const SHARED_MODE: u32 = 0o711;
const PRIVATE_MODE: u32 = 0o700;
const GROUP_MODE: u32 = 0o750;

/// Entries of a directory that a previous supervisor left for takeover.
#[derive(Debug, Default)]
pub(crate) struct InheritedEntries {
    /// The directory's lock, shared by its previous holder.
    pub(crate) lock: Option<OwnedFd>,
    /// The names of entries that must not be removed.
    pub(crate) names: BTreeSet<String>,
}

/// The supervisor's lock and handle on its runtime directory.
#[derive(Debug)]
pub(crate) struct RuntimeDir {
    path: PathBuf,
    plugins: OwnedFd,
    next: AtomicU32,
    /// Whether another supervisor has taken over the content.
    released: AtomicBool,
    lock: DirLock,
}

impl RuntimeDir {
    /// Creates the directory if needed, checks and locks it, and removes what an earlier supervisor left.
    /// `own_uids` says whether plugins have their own uids, which then need access.
    #[cfg(test)]
    pub(crate) fn prepare(path: &Path, own_uids: bool) -> Result<Self, SetupError> {
        Self::take_over(path, own_uids, InheritedEntries::default())
    }

    /// The same, but keeps the entries that another supervisor left for takeover.
    pub(crate) fn take_over(path: &Path, own_uids: bool, left: InheritedEntries) -> Result<Self, SetupError> {
        let path = prepare_dir(path, "runtime_dir", own_uids)?;
        let length = path.as_os_str().len();
        if length > MAX_RUNTIME_DIR_BYTES {
            return Err(SetupError::PathTooLong { runtime_dir: path, length, limit: MAX_RUNTIME_DIR_BYTES });
        }
        let lock_file = path.join(LOCK_FILE);
        let lock = match left.lock {
            Some(lock) => DirLock::take_over(&lock_file, lock),
            None => DirLock::acquire(&lock_file),
        };
        let lock = lock.map_err(|error| match error {
            LockError::Held { holder } => SetupError::AlreadyRunning { runtime_dir: path.clone(), holder },
            LockError::Io(source) => SetupError::Io { what: "lock", path: lock_file, source },
        })?;
        let plugins_path = prepare_dir(&path.join(PLUGINS_DIR), "runtime_dir", own_uids)?;
        let plugins = open_dir(&plugins_path).map_err(|e| SetupError::Io {
            what: "open",
            path: plugins_path.clone(),
            source: e.into(),
        })?;
        let this = Self { path, plugins, next: AtomicU32::new(1), released: AtomicBool::new(false), lock };
        this.clear_except(&left.names);
        Ok(this)
    }

    /// The path without symlinks.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes every private directory, of this supervisor or of one that crashed. An entry whose name, type
    /// or owner is not ours stays.
    pub(crate) fn clear(&self) {
        self.clear_except(&BTreeSet::new());
    }

    fn clear_except(&self, kept: &BTreeSet<String>) {
        let entries = match Dir::read_from(&self.plugins) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "leftovers cannot be listed");
                return;
            }
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name == c"." || name == c".." || name.to_str().is_ok_and(|name| kept.contains(name)) {
                continue;
            }
            if self.is_ours(name) {
                if let Err(error) = remove_tree(self.plugins.as_fd(), name) {
                    let name = Raw::from_bytes(name.to_bytes()).line_within(100);
                    tracing::warn!(%name, %error, "a leftover cannot be removed");
                }
            } else {
                tracing::warn!(
                    path = %self.path.display(),
                    name = %Raw::from_bytes(name.to_bytes()).line_within(100),
                    "left alone: not made by a supervisor"
                );
            }
        }
    }

    fn is_ours(&self, name: &std::ffi::CStr) -> bool {
        let bytes = name.to_bytes();
        let numbered = (1..=6).contains(&bytes.len())
            && bytes.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
        numbered
            && statat(&self.plugins, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
                FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                    && stat.st_uid == rustix::process::geteuid().as_raw()
            })
    }

    /// Creates a private directory for one process, owned by `owner` if the process has its own uid.
    pub(crate) fn allocate(self: &Arc<Self>, owner: Option<Identity>) -> io::Result<PrivateDir> {
        let dir = self.allocate_empty(owner)?;
        for inner in [SOCKET_DIR, TMP_DIR, HOME_DIR] {
            mkdirat(dir.sockets.fd(), inner, Mode::from_raw_mode(PRIVATE_MODE))?;
            let fd = openat(dir.sockets.fd(), inner, dir_flags(), Mode::empty())?;
            // Set while we are the owner: later only CAP_FOWNER could change the mode.
            fchmod(&fd, Mode::from_raw_mode(PRIVATE_MODE))?;
            if let Some(owner) = owner {
                fchown(&fd, Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))?;
            }
        }
        Ok(dir)
    }

    /// The same without subdirectories, for a process in a jail, which has its own, or for none.
    pub(crate) fn allocate_empty(self: &Arc<Self>, owner: Option<Identity>) -> io::Result<PrivateDir> {
        let (name, fd) = self.make_numbered()?;
        let path = self.path.join(PLUGINS_DIR).join(&name);
        let dir = PrivateDir {
            runtime: self.clone(),
            name,
            sockets: Arc::new(SocketDir::new(path, fd)),
            removed: AtomicBool::new(false),
        };
        if let Some(owner) = owner {
            fchown(dir.sockets.fd(), None, Some(Gid::from_raw(owner.gid)))?;
            fchmod(dir.sockets.fd(), Mode::from_raw_mode(GROUP_MODE))?;
        }
        Ok(dir)
    }

    /// The private directory of a process that another supervisor started.
    pub(crate) fn adopt(
        self: &Arc<Self>,
        name: &str,
        inside: Option<OwnedFd>,
        listening: Option<OwnedFd>,
    ) -> io::Result<PrivateDir> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, "its private directory is not there");
        let ours = CString::new(name).is_ok_and(|name| self.is_ours(&name));
        if !ours {
            return Err(missing());
        }
        let path = self.path.join(PLUGINS_DIR).join(name);
        let fd = openat(&self.plugins, name, dir_flags(), Mode::empty())?;
        Ok(PrivateDir {
            runtime: self.clone(),
            name: name.to_owned(),
            sockets: Arc::new(SocketDir::adopt(path, fd, inside, listening)),
            removed: AtomicBool::new(false),
        })
    }

    /// Marks the content as another supervisor's: nothing is removed from here on.
    pub(crate) fn release(&self) {
        self.released.store(true, Ordering::Release);
    }

    /// A duplicate of the lock, for the supervisor that takes over.
    pub(crate) fn duplicate_lock(&self) -> io::Result<OwnedFd> {
        self.lock.duplicate_fd()
    }

    fn make_numbered(&self) -> io::Result<(String, OwnedFd)> {
        for _ in 0..=LAST_NUMBER {
            let number = self.next.fetch_add(1, Ordering::Relaxed) % (LAST_NUMBER + 1);
            let name = format!("{number:x}");
            match mkdirat(&self.plugins, &name, Mode::from_raw_mode(PRIVATE_MODE)) {
                Ok(()) => {
                    let fd = openat(&self.plugins, &name, dir_flags(), Mode::empty())?;
                    return Ok((name, fd));
                }
                // Still in use after sixteen million starts, or a leftover that could not be removed.
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::StorageFull, "every private directory's number is in use"))
    }
}

/// The private directory of one process. Dropping it removes the directory.
#[derive(Debug)]
pub(crate) struct PrivateDir {
    runtime: Arc<RuntimeDir>,
    name: String,
    /// What its sockets are reached through. Connections hold it, too, but do not keep the directory.
    sockets: Arc<SocketDir>,
    removed: AtomicBool,
}

impl PrivateDir {
    /// The path without symlinks.
    pub(crate) fn path(&self) -> &Path {
        self.sockets.path()
    }

    /// What its sockets are reached through.
    pub(crate) fn sockets(&self) -> &Arc<SocketDir> {
        &self.sockets
    }

    /// Its name. It is unique as long as the directory exists.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether another supervisor has taken it over, with the processes in it.
    pub(crate) fn is_released(&self) -> bool {
        self.runtime.released.load(Ordering::Acquire)
    }

    pub(crate) fn socket_dir(&self) -> PathBuf {
        self.path().join(SOCKET_DIR)
    }

    pub(crate) fn tmp_dir(&self) -> PathBuf {
        self.path().join(TMP_DIR)
    }

    pub(crate) fn home_dir(&self) -> PathBuf {
        self.path().join(HOME_DIR)
    }

    /// Removes it with its content. Blocking.
    pub(crate) fn remove(&self) {
        if self.is_released() || self.removed.swap(true, Ordering::AcqRel) {
            return;
        }
        // The file system in memory lives as long as a descriptor of it is open, so ours is closed here.
        self.sockets.close_inside();
        if let Err(error) = remove_tree(self.runtime.plugins.as_fd(), &self.name) {
            tracing::warn!(path = %self.path().display(), %error, "a plugin's private directory cannot be removed");
        }
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        self.remove();
    }
}

fn dir_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Opens a directory; fails for a symlink.
pub(crate) fn open_dir(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, dir_flags(), Mode::empty())
}

#[cfg(test)]
mod tests;
