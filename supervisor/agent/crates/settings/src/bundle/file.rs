//! Reads the files that settings name.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The most files. 256: one for each provider and some with keys. Further ones are left out, with a problem.
pub(super) const MAX_FILES: usize = 256;
/// The most bytes of all files. 8 MiB: some scripts or certificate bundles of the largest size; an ordinary
/// configuration has some KiB. A file beyond that is left out, with a problem.
pub(super) const MAX_FILES_BYTES: usize = 8 << 20;
/// The largest file with keys. 64 KiB: some hundred keys; more is another file, named by mistake.
const MAX_KEYS_BYTES: usize = 64 << 10;
/// The largest file with certificates. 1 MiB: all authorities that a browser knows are a quarter of that.
const MAX_CERTIFICATES_BYTES: usize = 1 << 20;
/// The largest file with prepared answers. 1 MiB: far more than anybody writes by hand.
const MAX_SCRIPT_BYTES: usize = 1 << 20;
/// How much of a file is read: one byte more than the largest limit, so that a larger file shows.
const MAX_READ_BYTES: u64 = (1 << 20) + 1;

/// A file that was read.
#[derive(Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// Its contents, up to one byte more than any limit.
    pub bytes: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
}

/// The purpose of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileUse {
    Keys,
    Certificates,
    Script,
}

/// Why a file is not passed on.
#[derive(Debug, thiserror::Error)]
pub enum NamedFileError {
    /// It cannot be read.
    #[error("{path} cannot be read ({source}): the user that the supervisor runs as reads it, so check the path, and whether that user may", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It contains keys, and anyone can read it.
    #[error("{path} can be read by everybody on this machine (mode {mode:o}): run `chmod o= {path}`, and think of the key as known", path = .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It is too large for its purpose.
    #[error("{path} is larger than {most} bytes: is it {what}?", path = path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        most: usize,
        /// The purpose.
        what: &'static str,
    },
    /// There are too many files, or their total is too large.
    #[error("{path} is left out: providers name more than {MAX_FILES} files, or more than {MAX_FILES_BYTES} bytes in files; remove some", path = .0.display())]
    TooMany(PathBuf),
}

/// Reads a file that settings name, up to one byte more than any limit.
///
/// # Errors
/// Those of reading; one that is not regular is rejected, since opening a pipe would hang.
pub fn read_file(path: &Path) -> io::Result<NamedFile> {
    let regular = |found: &std::fs::Metadata| {
        found.is_file().then_some(()).ok_or_else(|| io::Error::other("it is no regular file"))
    };
    regular(&std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    let found = file.metadata()?;
    regular(&found)?;
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    Ok(NamedFile { bytes, mode: found.permissions().mode() & 0o7777 })
}

/// Returns the contents if they may be passed on.
pub(super) fn check_contents(
    path: &Path,
    used: FileUse,
    found: NamedFile,
) -> Result<Vec<u8>, NamedFileError> {
    let NamedFile { bytes, mode } = found;
    // Group access is allowed: service managers' credentials have it, and so do shared files of root.
    if used == FileUse::Keys && mode & 0o007 != 0 {
        return Err(NamedFileError::Open { path: path.to_owned(), mode });
    }
    let (most, what) = match used {
        FileUse::Keys => (MAX_KEYS_BYTES, "the file with the keys"),
        FileUse::Certificates => (MAX_CERTIFICATES_BYTES, "the file with the certificates"),
        FileUse::Script => (MAX_SCRIPT_BYTES, "the file with the answers"),
    };
    if bytes.len() > most {
        return Err(NamedFileError::TooLarge { path: path.to_owned(), most, what });
    }
    Ok(bytes)
}
