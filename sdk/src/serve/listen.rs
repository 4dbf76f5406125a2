//! The listening socket: created in the directory that the host named, or inherited as a descriptor.

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrLike, UnixAddr, bind, getsockopt,
    listen as start_listening, socket, sockopt,
};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use super::error::{DescriptorError, ServeError};
use super::handshake::{FD_ENV, SOCKET_DIR_ENV};
use crate::random::random_name;

/// A unix socket's path with its terminating zero has 108 bytes.
const MAX_PATH_BYTES: usize = 107;
/// Connections that may wait to be accepted. A host makes a handful.
const BACKLOG: i32 = 128;

/// A listening socket, its path, and the file to remove at the end if we created it.
#[derive(Debug)]
pub(super) struct BoundSocket {
    pub(super) socket: UnixListener,
    pub(super) path: PathBuf,
    pub(super) file: Option<SocketFile>,
}

/// A socket's file; removed when dropped.
#[derive(Debug)]
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // If it is gone already that is fine, and at the end no other error can be handled.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns the socket to serve on.
pub(super) fn listen(env: impl Fn(&str) -> Option<OsString>) -> Result<BoundSocket, ServeError> {
    if let Some(value) = env(FD_ENV) {
        return from_descriptor(&value).map_err(|reason| ServeError::BadDescriptor { value, reason });
    }
    let dir = match env(SOCKET_DIR_ENV) {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => std::env::temp_dir(),
    };
    bind_in(&dir)
}

fn bind_in(dir: &Path) -> Result<BoundSocket, ServeError> {
    let path = dir.join(format!("plugin{}", random_name()));
    if path.as_os_str().len() > MAX_PATH_BYTES {
        return Err(ServeError::PathTooLong { path, max: MAX_PATH_BYTES });
    }
    match bind_private(&path) {
        Ok(socket) => Ok(BoundSocket { socket, file: Some(SocketFile(path.clone())), path }),
        Err(source) => Err(ServeError::Listen { path, source }),
    }
}

/// Binds, restricts the file to this user, and only then listens, so that no client can connect in between.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    bind(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    start_listening(&fd, Backlog::new(BACKLOG)?)?;
    Ok(UnixListener::from(fd))
}

fn from_descriptor(value: &OsString) -> Result<BoundSocket, DescriptorError> {
    let number: i32 = value
        .to_str()
        .and_then(|text| text.parse().ok())
        .filter(|number| *number >= 0)
        .ok_or(DescriptorError::NotANumber)?;
    let fd = duplicate(number).map_err(|source| DescriptorError::NotOpen { number, source })?;
    let listens =
        getsockopt(&fd, sockopt::AcceptConn).map_err(|_: Errno| DescriptorError::NotASocket(number))?;
    if !listens {
        return Err(DescriptorError::NotListening(number));
    }
    let address: UnixAddr = nix::sys::socket::getsockname(fd.as_raw_fd())
        .map_err(|errno| DescriptorError::NotUnix { number, source: errno.into() })?;
    debug_assert!(address.len() > 0, "getsockname filled it");
    let path = address.path().ok_or(DescriptorError::NoPath(number))?.to_owned();
    let socket = UnixListener::from(fd);
    socket.set_nonblocking(true).map_err(|source| DescriptorError::SetUp { number, source })?;
    Ok(BoundSocket { socket, path, file: None })
}

/// Duplicates a descriptor by its number. The inherited one stays open until the process ends, which is when
/// the socket should close anyway.
fn duplicate(number: i32) -> io::Result<OwnedFd> {
    use std::os::fd::AsFd;
    if number == 0 {
        return io::stdin().as_fd().try_clone_to_owned();
    }
    let this_process = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(&this_process, number, PidfdGetfdFlags::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: impl Into<OsString>) -> impl Fn(&str) -> Option<OsString> {
        let value = value.into();
        move |asked| (asked == name).then(|| value.clone())
    }

    // Promises: SDK-11
    #[test]
    fn the_socket_is_ours_alone_and_goes_with_us() {
        let dir = tempfile::tempdir().expect("dir");
        let listening = listen(with(SOCKET_DIR_ENV, dir.path())).expect("listens");
        assert!(listening.path.starts_with(dir.path()));
        let mode = std::fs::metadata(&listening.path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::os::unix::net::UnixStream::connect(&listening.path).expect("connects");
        let path = listening.path.clone();
        drop(listening);
        assert!(!path.exists());
    }

    // Promises: SDK-11
    #[test]
    fn a_directory_too_deep_is_named() {
        let deep = format!("/tmp/{}", "d".repeat(120));
        let error = listen(with(SOCKET_DIR_ENV, deep)).expect_err("refused").to_string();
        assert!(error.contains("at most 107") && error.contains(SOCKET_DIR_ENV), "{error}");
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = listen(with(SOCKET_DIR_ENV, "/nonexistent/dir")).expect_err("refused").to_string();
        assert!(error.starts_with("cannot listen on /nonexistent/dir/plugin"), "{error}");
    }

    // Promises: SDK-12
    #[test]
    fn a_listening_descriptor_is_taken_over() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("handed.sock");
        let ours = UnixListener::bind(&path).expect("bound");
        let taken = listen(with(FD_ENV, ours.as_raw_fd().to_string())).expect("taken");
        assert_eq!(taken.path, path);
        drop(ours);
        std::os::unix::net::UnixStream::connect(&path).expect("the copy still listens");
        drop(taken);
        assert!(path.exists(), "whoever made the file removes it");
    }

    #[test]
    fn what_is_no_listening_unix_socket_is_refused() {
        let file = tempfile::tempfile().expect("file");
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
        let quiet =
            socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("socket");
        for (value, says) in [
            ("abc".to_owned(), "must be the number"),
            ("-1".to_owned(), "must be the number"),
            ("1000000".to_owned(), "cannot take descriptor 1000000"),
            (file.as_raw_fd().to_string(), "is no socket"),
            (quiet.as_raw_fd().to_string(), "does not listen"),
            (tcp.as_raw_fd().to_string(), "is no unix socket"),
        ] {
            let error = listen(with(FD_ENV, &value)).expect_err("refused").to_string();
            assert!(error.contains(says), "expected {says:?} in {error:?}");
        }
    }
}
