//! Reads one file below a directory.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, open, openat, readlinkat};
use rustix::io::Errno;
use talon_store::Timestamp;

/// How much of a file is read: far more than a prompt has room for ([`crate::prompt::Workspace`] shows 16 KiB
/// and says what it left out), and little enough that a large file put there by mistake costs nothing.
const MAX_READ_BYTES: u64 = 1024 * 1024;

/// The most links on the path to one file, as many as the kernel follows. More count as a loop.
const MAX_LINKS: usize = 40;
/// The most path components still to resolve, which bounds links that point to links.
const MAX_PARTS: usize = 256;

/// The flags to open a file: without blocking, and a link is an error.
const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW);
/// The flags to open a directory on the path.
const DIRECTORY_FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// A file that was changed this recently before it was read may change again within the same tick of the file
/// system's clock, without a visible difference; so it is read again.
const SETTLED_AFTER_SECONDS: i64 = 2;

/// How an unchanged file is recognized: same inode, content size and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// It had not been changed for a while when it was read.
    is_settled: bool,
}

/// The result of reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    /// There is no file.
    Missing,
    /// Unchanged.
    Same,
    /// New or changed.
    New {
        /// How it is recognized next time.
        stamp: Stamp,
        /// Its text, up to the limit.
        text: String,
        /// Its problem, if there is one.
        problem: Option<&'static str>,
    },
    /// It cannot be read; the reason.
    Refused(String),
}

/// Opens an existing directory.
pub(super) fn directory(path: &Path) -> Result<OwnedFd, Errno> {
    open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Reads a file below a directory, unless it is unchanged.
pub(super) fn read(root: &OwnedFd, path: &str, before: Option<Stamp>) -> ReadOutcome {
    let file = match opened(root, path) {
        Ok(file) => file,
        Err(Errno::NOENT) => return ReadOutcome::Missing,
        Err(Errno::XDEV) => {
            return ReadOutcome::Refused(
                "it is a link that leads out of the workspace; put the file itself there".to_owned(),
            );
        }
        // A socket cannot be opened at all.
        Err(Errno::NXIO | Errno::NODEV) => return ReadOutcome::Refused(NOT_REGULAR.to_owned()),
        Err(Errno::ACCESS | Errno::PERM) => {
            return ReadOutcome::Refused(
                "the agent's user may not read it; make it readable for that user".to_owned(),
            );
        }
        Err(error) => {
            return ReadOutcome::Refused(format!("it cannot be opened ({error}); correct or remove it"));
        }
    };
    match contents(file, before) {
        Ok(found) => found,
        Err(error) => ReadOutcome::Refused(format!("it cannot be read ({error}); correct or remove it")),
    }
}

const NOT_REGULAR: &str = "it is no regular file; put one there";

/// Opens a file below `root`, component by component, and resolves links itself. The kernel could do it in
/// one call (`openat2` with `RESOLVE_BENEATH`), but a jail with a writable directory forbids it, since its
/// filter cannot see the mode with which a file would be created. So this is the only way, in a jail and
/// outside.
fn opened(root: &OwnedFd, path: &str) -> Result<OwnedFd, Errno> {
    let mut left = parts(Path::new(path))?;
    let mut within: Vec<OwnedFd> = Vec::new();
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        if part == ".." {
            // `..` above the root leads outside.
            within.pop().ok_or(Errno::XDEV)?;
            continue;
        }
        let at = within.last().unwrap_or(root);
        let flags = if left.is_empty() { FILE_FLAGS } else { DIRECTORY_FLAGS };
        match openat(at, &part, flags, Mode::empty()) {
            Ok(file) if left.is_empty() => return Ok(file),
            Ok(place) => within.push(place),
            // The errors for a link, opened as a file and as a directory.
            Err(error @ (Errno::LOOP | Errno::NOTDIR)) => {
                // Not a link: keep the error.
                let to = readlinkat(at, &part, Vec::new()).map_err(|_| error)?;
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP);
                }
                for part in parts(Path::new(OsStr::from_bytes(to.as_bytes())))?.into_iter().rev() {
                    left.push_front(part);
                }
                if left.len() > MAX_PARTS {
                    return Err(Errno::NAMETOOLONG);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(Errno::ISDIR)
}

/// The components of a relative path.
fn parts(path: &Path) -> Result<VecDeque<OsString>, Errno> {
    let part = |part: Component<'_>| match part {
        Component::CurDir => None,
        Component::RootDir | Component::Prefix(_) => Some(Err(Errno::XDEV)),
        Component::ParentDir | Component::Normal(_) => Some(Ok(part.as_os_str().to_owned())),
    };
    path.components().filter_map(part).collect()
}

fn contents(file: OwnedFd, before: Option<Stamp>) -> std::io::Result<ReadOutcome> {
    let file = File::from(file);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(ReadOutcome::Refused(NOT_REGULAR.to_owned()));
    }
    let stamp = stamp(&metadata);
    if before == Some(Stamp { is_settled: true, ..stamp }) {
        return Ok(ReadOutcome::Same);
    }
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES + 1).read_to_end(&mut bytes)?;
    let most = usize::try_from(MAX_READ_BYTES).unwrap_or(usize::MAX);
    let is_long = bytes.len() > most;
    bytes.truncate(most);
    // Truncation may leave half a character at the end, which is not the author's mistake.
    let is_text =
        std::str::from_utf8(&bytes).map_or_else(|error| is_long && error.error_len().is_none(), |_| true);
    let text = String::from_utf8_lossy(&bytes);
    let problem = match (is_long, is_text) {
        (true, _) => Some("it has more than 1 MiB, and what is beyond is not looked at; make it shorter"),
        (false, false) => Some("it is not all UTF-8, and what is not is shown as �; save it as UTF-8"),
        (false, true) => None,
    };
    Ok(ReadOutcome::New { stamp, text: text.into_owned(), problem })
}

fn stamp(metadata: &Metadata) -> Stamp {
    let now = Timestamp::now().as_millis() / 1000;
    Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        is_settled: now.saturating_sub(metadata.ctime()) > SETTLED_AFTER_SECONDS,
    }
}
