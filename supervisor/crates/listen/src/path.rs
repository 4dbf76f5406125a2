//! Paths of sockets that are too long for a socket address.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// Maximum length of a path in a unix socket address: `sun_path` has 108 bytes and ends with a zero.
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// A path that fits into a socket address: the path itself, or one through a descriptor of its directory,
/// which stays open as long as this value lives.
#[derive(Debug)]
pub struct ShortPath {
    path: PathBuf,
    _directory: Option<OwnedFd>,
}

impl ShortPath {
    /// The short path of a socket file, which need not exist yet; its directory must.
    ///
    /// # Errors
    /// The error of opening the directory.
    pub fn of_file(path: &Path) -> io::Result<Self> {
        if path.as_os_str().as_bytes().len() <= MAX_SOCKET_PATH_BYTES {
            return Ok(Self { path: path.to_owned(), _directory: None });
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the path of a file"));
        };
        let directory =
            openat(CWD, parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _directory: Some(directory) })
    }

    /// The path to connect or bind to, valid in this process.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_long_path_is_bound_and_reached_through_its_directory() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(100)).join("e".repeat(100));
        std::fs::create_dir_all(&deep).unwrap();
        let path = deep.join("host.sock");

        let listener = UnixListener::bind(ShortPath::of_file(&path).unwrap().as_path()).unwrap();
        assert!(path.exists());
        UnixStream::connect(ShortPath::of_file(&path).unwrap().as_path()).unwrap();
        listener.accept().unwrap();
    }

    #[test]
    fn a_short_path_stays_as_it_is() {
        let path = Path::new("/run/talon/host.sock");
        assert_eq!(ShortPath::of_file(path).unwrap().as_path(), path);
    }
}
