//! Digests of programs and plugin directories.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::tree::{self, MAX_BYTES, TreeEntry, TreeError};

/// The read size.
const CHUNK_BYTES: usize = 64 << 10;

/// The SHA-256 of a file's content, in lower-case hex. Does not use or change the file position, so several
/// starts can share one descriptor.
///
/// # Errors
/// When it cannot be read, or holds more than [`MAX_BYTES`].
pub fn of_file(file: &File) -> io::Result<String> {
    copy(file, &mut io::sink())
}

/// Copies a file's content from its start and returns the SHA-256 of exactly the written bytes.
pub fn copy(from: &File, to: &mut dyn Write) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut total: u64 = 0;
    loop {
        let read = match from.read_at(&mut chunk, total) {
            Ok(0) => return Ok(hex::encode(hash.finalize())),
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        total += read as u64;
        if total > MAX_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file grows while it is read"));
        }
        hash.update(&chunk[..read]);
        to.write_all(&chunk[..read])?;
    }
}

/// The digest of a directory: one SHA-256 over a record for each entry in the order of the walk.
///
/// A record is a letter (`d` directory, `f` file, `x` executable file, `l` link), the path below the root,
/// NUL, the file's own SHA-256 in hex or the link's target, NUL. Paths contain no NUL, so different trees
/// give different input. Of the mode only the execute bit counts: the other bits depend on the umask, and a
/// view sets its own.
#[derive(Default)]
pub struct TreeDigest(Sha256);

impl TreeDigest {
    /// The digest of an empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self(Sha256::new())
    }

    fn record(&mut self, letter: u8, path: &Path, content: &[u8]) {
        self.0.update([letter]);
        self.0.update(path.as_os_str().as_bytes());
        self.0.update([0]);
        self.0.update(content);
        self.0.update([0]);
    }

    /// Adds a directory.
    pub fn directory(&mut self, path: &Path) {
        self.record(b'd', path, b"");
    }

    /// Adds a file by the digest of its content.
    pub fn file(&mut self, path: &Path, executable: bool, digest: &str) {
        self.record(if executable { b'x' } else { b'f' }, path, digest.as_bytes());
    }

    /// Adds a symlink.
    pub fn link(&mut self, path: &Path, target: &Path) {
        self.record(b'l', path, target.as_os_str().as_bytes());
    }

    /// The digest, in lower-case hex.
    #[must_use]
    pub fn finish(self) -> String {
        hex::encode(self.0.finalize())
    }
}

/// The digest of a directory on the disk; `skip` is a name directly in it that is ignored.
///
/// # Errors
/// [`TreeError`] for everything that a view could not contain either.
pub fn of_tree(root: &Path, skip: Option<&OsStr>) -> Result<String, TreeError> {
    let mut digest = TreeDigest::new();
    tree::walk(root, skip, &mut |path, entry| {
        match entry {
            TreeEntry::Dir => digest.directory(path),
            TreeEntry::File { file, executable } => {
                let content =
                    of_file(file).map_err(|source| TreeError::Io { path: root.join(path), source })?;
                digest.file(path, executable, &content);
            }
            TreeEntry::Link { target } => digest.link(path, target),
        }
        Ok(())
    })?;
    Ok(digest.finish())
}
