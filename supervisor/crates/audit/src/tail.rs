//! Finds the end of a file: its last record, and an incomplete line after it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::directory::files_of;
use crate::hex_digest;
use crate::line::{self, ChainLink, Hash, MAX_LINE_BYTES};

/// The end of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// It contains no whole line.
    Empty {
        /// The incomplete line that it contains instead.
        cut: Option<PartialLine>,
    },
    /// It ends in a record, possibly followed by an incomplete line.
    Whole { last: ChainLink, cut: Option<PartialLine> },
    /// Its last line is not a record.
    Damaged { why: String },
}

/// An incomplete line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PartialLine {
    /// Its offset, where the file is to be truncated.
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    pub(crate) sha256: String,
}

/// How much of a file's end is read: an incomplete line and a whole one before it.
const WINDOW_BYTES: u64 = 2 * (MAX_LINE_BYTES as u64 + 1);

pub(crate) fn read_tail(file: &mut File) -> io::Result<Tail> {
    let size = file.seek(SeekFrom::End(0))?;
    let from = size.saturating_sub(WINDOW_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut window = Vec::new();
    file.take(WINDOW_BYTES).read_to_end(&mut window)?;

    let whole = window.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let (whole, piece) = window.split_at(whole);
    let cut = (!piece.is_empty()).then(|| PartialLine {
        at: from + whole.len() as u64,
        bytes: piece.len() as u64,
        sha256: hex_digest::sha256(piece),
    });
    let Some(lines) = whole.strip_suffix(b"\n") else {
        return Ok(if from == 0 {
            Tail::Empty { cut }
        } else {
            Tail::Damaged { why: "its end is longer than any record".to_owned() }
        });
    };
    let last = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |before| before + 1);
    Ok(match line::parse(&lines[last..]) {
        Ok(last) => Tail::Whole { last, cut },
        Err(why) => Tail::Damaged { why: format!("it ends in {why}") },
    })
}

/// The first record of a file, if its first line is one.
pub(crate) fn read_first(file: &File) -> io::Result<Option<ChainLink>> {
    let mut start = vec![0; MAX_LINE_BYTES + 1];
    let read = file.read_at(&mut start, 0)?;
    let line = start[..read].split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(line::parse(line).ok())
}

/// The last record of a log, whose hash covers all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The file that contains it.
    pub file: PathBuf,
    /// Its sequence number.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
    /// When it was made, by the system clock.
    pub unix_ms: u64,
}

/// Why there is no head.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// There is no record.
    #[error("{} holds no record of an audit log: name the directory that audit.dir names", .0.display())]
    Empty(PathBuf),
    /// The last line is not a record.
    #[error("{} has no last record: {why}; see `talon audit verify`", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What the file ends in.
        why: String,
    },
    /// It cannot be read.
    #[error("cannot read {}: {source}; read it as the user that the supervisor runs as, or as root", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// The head of the log in a directory. Works while a supervisor writes to it.
///
/// # Errors
/// [`HeadError`].
pub fn head(dir: &Path) -> Result<Head, HeadError> {
    let unread = |path: &Path| {
        let path = path.to_owned();
        move |source| HeadError::Io { path, source }
    };
    let files = files_of(dir).map_err(unread(dir))?;
    for file in files.into_iter().rev() {
        let mut opened = File::open(&file).map_err(unread(&file))?;
        match read_tail(&mut opened).map_err(unread(&file))? {
            // The next file, which has just been created.
            Tail::Empty { .. } => {}
            Tail::Whole { last, .. } => {
                return Ok(Head { file, seq: last.seq, hash: last.hash, unix_ms: last.unix_ms });
            }
            Tail::Damaged { why } => return Err(HeadError::Damaged { file, why }),
        }
    }
    Err(HeadError::Empty(dir.to_owned()))
}
