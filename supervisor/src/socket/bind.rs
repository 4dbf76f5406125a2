//! A socket in the runtime directory: created so that clients cannot connect before its owner and mode are
//! set, and removed at the end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, chmodat, chownat, openat, statat, unlinkat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

use talon_listen::ShortPath;

/// The name of the host API's socket in the runtime directory.
pub const HOST_SOCKET_NAME: &str = "host.sock";
/// Owner and group may connect; their role decides what they may do.
const SOCKET_MODE: u32 = 0o660;
/// The listen backlog: enough for a burst of clients, and for all that connect during a handover between
/// supervisors. Beyond it connects wait or fail; the kernel's limit is `net.core.somaxconn`.
const BACKLOG: i32 = 1024;

/// Why the socket cannot be bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// A file that is not a socket has this name.
    #[error("{} exists and is not a socket: move it away", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// Another process listens there.
    #[error("somebody else listens on {}: stop that program, or choose another runtime_dir", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// The group cannot be set.
    #[error("cannot give {} to the group {gid}: {source}; start talon as root or as a member of that group", path.display())]
    Group {
        /// The path.
        path: PathBuf,
        /// The group.
        gid: u32,
        /// Why not.
        source: io::Error,
    },
    /// The users and groups of `host.peers` cannot be let in.
    #[error("cannot let the users and groups of host.peers connect to {}: {source}; set host.group to a group that they share, or set runtime_dir to a file system with access control lists", path.display())]
    Grants {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The socket belongs to a service manager, which passed it in and only linked it here.
    #[error("{} was handed in by the service manager, which sets its group: see SocketGroup= of the socket unit", path.display())]
    Inherited {
        /// The path.
        path: PathBuf,
    },
    /// A step failed.
    #[error("cannot {what} {}: {source}; check the runtime_dir's owner, mode and free space", path.display())]
    Io {
        /// The operation.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A listening socket, and its file if it must be removed.
#[derive(Debug)]
pub struct HostSocket {
    /// The listener; it does not block.
    pub listener: UnixListener,
    /// Removed when this is dropped, unless another socket has taken its place. `None` if another process
    /// (the service manager) created the socket and removes it.
    pub file: Option<SocketFile>,
}

/// The socket's file.
#[derive(Debug)]
pub struct SocketFile {
    directory: OwnedFd,
    name: &'static str,
    identity: FileIdentity,
    retained: bool,
}

/// Device and inode of the socket that was bound, to recognize it even if its name is reused.
pub type FileIdentity = (u64, u64);

impl SocketFile {
    /// The file of a socket that another supervisor bound. It is not removed on drop before it is
    /// [claimed](Self::claim).
    ///
    /// # Errors
    /// When its directory cannot be opened.
    pub fn adopt(runtime_dir: &Path, name: &'static str, identity: FileIdentity) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, runtime_dir, flags, Mode::empty())?;
        Ok(Self { directory, name, identity, retained: true })
    }

    /// The identity, for the supervisor that takes over.
    #[must_use]
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// From now on the file is removed on drop.
    pub fn claim(&mut self) {
        self.retained = false;
    }

    /// Leaves the file in place, because another supervisor uses it now.
    pub fn retain(mut self) {
        self.retained = true;
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.retained {
            return;
        }
        if let Ok(found) = statat(&self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW)
            && (found.st_dev, found.st_ino) == self.identity
        {
            // If removal fails, the next supervisor removes the dead socket.
            let _ = unlinkat(&self.directory, self.name, AtFlags::empty());
        }
    }
}

/// Binds `host.sock` in a runtime directory whose lock this process holds. `group` may connect; without one
/// the socket keeps the process's group.
///
/// A dead socket of an earlier supervisor is removed: this process holds the lock, and nothing answers on the
/// socket.
///
/// # Errors
/// [`BindError`]; nothing is left behind.
pub fn bind_host(runtime_dir: &Path, group: Option<u32>) -> Result<HostSocket, BindError> {
    bind_named(runtime_dir, HOST_SOCKET_NAME, group, LiveSocket::Keep)
}

/// What to do if a process listens on a socket of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiveSocket {
    /// Keep it, and fail.
    Keep,
    /// Replace its file: this process holds the directory's lock, so it belongs to the supervisor that hands
    /// over.
    Replace,
}

/// Like [`bind_host`], for a socket of another name.
///
/// # Errors
/// [`BindError`]; nothing is left behind.
pub(crate) fn bind_named(
    runtime_dir: &Path,
    name: &'static str,
    group: Option<u32>,
    living: LiveSocket,
) -> Result<HostSocket, BindError> {
    let path = runtime_dir.join(name);
    let io = |what: &'static str| {
        let path = path.clone();
        move |source: rustix::io::Errno| BindError::Io { what, path, source: source.into() }
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, runtime_dir, flags, Mode::empty()).map_err(io("open the directory of"))?;
    let short = ShortPath::of_file(&path).map_err(|source| BindError::Io {
        what: "open the directory of",
        path: path.clone(),
        source,
    })?;
    clear(&directory, name, &path, &short, living)?;

    let address = SocketAddrUnix::new(short.as_path()).map_err(io("name"))?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(io("make"))?;
    bind(&socket, &address).map_err(io("bind"))?;
    let made = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io("look at"))?;
    let file = SocketFile { directory, name, identity: (made.st_dev, made.st_ino), retained: false };

    // Every connect is refused until `listen`, so that clients cannot connect before the final mode is set.
    if let Some(gid) = group {
        chownat(&file.directory, name, None, Some(Gid::from_raw(gid)), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|source| BindError::Group { path: path.clone(), gid, source: source.into() })?;
    }
    let mode = Mode::from_raw_mode(SOCKET_MODE);
    chmodat(&file.directory, name, mode, AtFlags::empty()).map_err(io("set the mode of"))?;
    listen(&socket, BACKLOG).map_err(io("listen on"))?;
    Ok(HostSocket { listener: socket.into(), file: Some(file) })
}

/// Sets the socket's group, or resets it to the process's own, after a change of the configuration. Existing
/// connections are not affected. Blocking.
///
/// # Errors
/// [`BindError`]; then the group stays.
pub fn set_group(runtime_dir: &Path, name: &str, group: Option<u32>) -> Result<(), BindError> {
    let path = own_socket(runtime_dir, name)?;
    let gid = group.unwrap_or_else(|| rustix::process::getegid().as_raw());
    chownat(CWD, &path, None, Some(Gid::from_raw(gid)), AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|source| BindError::Group { path, gid, source: source.into() })
}

/// The path of a socket in the runtime directory that was bound here, and not by the service manager: of
/// those, only a link is there.
pub(super) fn own_socket(runtime_dir: &Path, name: &str) -> Result<PathBuf, BindError> {
    let path = runtime_dir.join(name);
    let found = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).map_err(|source| BindError::Io {
        what: "look at",
        path: path.clone(),
        source: source.into(),
    })?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Socket => Ok(path),
        FileType::Symlink => Err(BindError::Inherited { path }),
        _ => Err(BindError::NotASocket { path }),
    }
}

fn clear(
    directory: &OwnedFd,
    name: &str,
    path: &Path,
    short: &ShortPath,
    living: LiveSocket,
) -> Result<(), BindError> {
    let found = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(rustix::io::Errno::NOENT) => return Ok(()),
        Err(error) => {
            return Err(BindError::Io { what: "look at", path: path.to_owned(), source: error.into() });
        }
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
        return Err(BindError::NotASocket { path: path.to_owned() });
    }
    match UnixStream::connect(short.as_path()) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
        _ if living == LiveSocket::Replace => {}
        // A full backlog, a foreign owner, an answer: in all these cases the socket is not provably dead.
        _ => return Err(BindError::InUse { path: path.to_owned() }),
    }
    unlinkat(directory, name, AtFlags::empty()).map_err(|error| BindError::Io {
        what: "remove the dead",
        path: path.to_owned(),
        source: error.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener as StdListener;

    use super::*;

    // Promises: HOST-1
    #[test]
    fn it_is_bound_with_its_mode_and_removed_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(HOST_SOCKET_NAME);
        let socket = bind_host(dir.path(), None).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, SOCKET_MODE);
        UnixStream::connect(&path).unwrap();
        drop(socket);
        assert!(!path.exists());
    }

    // Promises: HOST-2
    #[test]
    fn a_dead_socket_is_replaced_and_a_living_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(HOST_SOCKET_NAME);
        drop(StdListener::bind(&path).unwrap());
        assert!(path.exists());
        let socket = bind_host(dir.path(), None).unwrap();
        assert!(matches!(bind_host(dir.path(), None), Err(BindError::InUse { .. })));
        drop(socket);
    }

    // Promises: HOST-2
    #[test]
    fn a_file_of_that_name_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(HOST_SOCKET_NAME);
        std::fs::write(&path, "mine").unwrap();
        assert!(matches!(bind_host(dir.path(), None), Err(BindError::NotASocket { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn a_successors_socket_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(HOST_SOCKET_NAME);
        let socket = bind_host(dir.path(), None).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _other = StdListener::bind(&path).unwrap();
        drop(socket);
        assert!(path.exists());
    }

    #[test]
    fn a_file_that_was_taken_over_is_removed_and_one_that_was_handed_over_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(HOST_SOCKET_NAME);
        let file = bind_host(dir.path(), None).unwrap().file.unwrap();
        let adopt = || SocketFile::adopt(dir.path(), HOST_SOCKET_NAME, file.identity()).unwrap();
        // A supervisor that did not claim it leaves the file.
        drop(adopt());
        let mut adopted = adopt();
        file.retain();
        assert!(path.exists());
        adopted.claim();
        drop(adopted);
        assert!(!path.exists());
    }

    #[test]
    fn a_runtime_directory_of_any_length_will_do() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(150));
        std::fs::create_dir(&deep).unwrap();
        let _socket = bind_host(&deep, None).unwrap();
        assert!(deep.join(HOST_SOCKET_NAME).exists());
    }
}
