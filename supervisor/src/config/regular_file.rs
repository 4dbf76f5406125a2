//! Opens a file that an operator names, without waiting for it.
//!
//! A FIFO without a writer would hold the thread that opens it for ever, a device may do anything, and a
//! terminal would become the supervisor's.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It cannot be opened or read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is something else than a file.
    #[error("it is {0}, and only a regular file is read")]
    NotRegular(&'static str),
    /// It is longer than the caller reads.
    #[error("it is longer than {0} bytes")]
    TooLong(usize),
}

/// Opens a regular file for reading; everything else is refused without a wait.
///
/// # Errors
/// [`OpenError::Io`] and [`OpenError::NotRegular`].
pub fn open(path: &Path) -> Result<File, OpenError> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // Of the open descriptor: the name may lead elsewhere by now.
    let kind = file.metadata()?.file_type();
    if kind.is_file() { Ok(file) } else { Err(OpenError::NotRegular(name(kind))) }
}

/// Reads a regular file of at most `max_bytes`.
///
/// # Errors
/// [`OpenError`].
pub(crate) fn read(path: &Path, max_bytes: usize) -> Result<Vec<u8>, OpenError> {
    read_opened(open(path)?, max_bytes)
}

/// Reads the whole of an open file of at most `max_bytes`.
pub(super) fn read_opened(file: File, max_bytes: usize) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    // One byte more than allowed shows that it is too long.
    file.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes { Err(OpenError::TooLong(max_bytes)) } else { Ok(bytes) }
}

fn name(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        kind if kind.is_socket() => "a socket",
        _ => "no file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_without_a_wait() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (path, what) in
            [(fifo.as_path(), "a FIFO"), (dir.path(), "a directory"), (Path::new("/dev/zero"), "a device")]
        {
            let error = read(path, 10).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(read(&path, 10).unwrap(), b"0123456789");
        assert!(matches!(read(&path, 9), Err(OpenError::TooLong(9))));
    }
}
