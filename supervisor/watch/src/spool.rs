//! Observations that the agent has not taken yet, on the disk: a watcher that is killed sends them after its next
//! start, each with the id that it had, so that the agent counts none twice.
//!
//! One file, to which records are appended: an observation, or how many of the oldest were removed. It is emptied
//! when nothing waits, and written anew when it becomes long. Texts in it are redacted, as those that are sent.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use prost::Message as _;
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};
use talon_proto::agent::Observation;

use crate::runtime_dir::WatcherLock;

/// The longest file. 8 MiB: 512 observations of the longest kind take 6; beyond it the file is written anew.
const FILE_BYTES: u64 = 8 << 20;

/// The longest record that is believed: an observation has 12 KiB at most.
const RECORD_BYTES: usize = 64 << 10;

/// How long an observation is kept for an agent that does not answer. A day: then it is of no use any more.
const KEPT_MS: u64 = 24 * 60 * 60 * 1000;

const FILE: &str = "observations";
const NEW_FILE: &str = "observations.new";
const LOCK: &str = "lock";

/// The kinds of records: an observation that waits.
const ADDED: u8 = b'a';
/// So many of the oldest were taken by the agent, which was told of so many that were dropped.
const TAKEN: u8 = b't';
/// The oldest was dropped, and counts as such.
const DROPPED: u8 = b'd';
/// So many were dropped before.
const COUNT: u8 = b'c';

/// Before each record: its kind and its length.
const HEAD: usize = 5;
/// After each record: the beginning of the SHA-256 of all before it.
const CHECK: usize = 4;

/// Whether an observation may still wait. A clock that was set back makes none older.
pub(crate) fn is_kept(observation: &Observation, now_ms: u64) -> bool {
    now_ms.saturating_sub(observation.occurred_unix_ms) <= KEPT_MS
}

/// The file. It is this process's alone for as long as it is open.
#[derive(Debug)]
pub(crate) struct Spool {
    directory: PathBuf,
    file: File,
    bytes: u64,
    _lock: WatcherLock,
}

/// What was left over.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SpooledRest {
    /// The oldest first.
    pub(crate) observations: Vec<Observation>,
    /// Those that were dropped, and of which the agent was not told.
    pub(crate) dropped: u64,
}

impl Spool {
    /// Opens the file below a directory of this user, which is made; with what is left over from before. Observations
    /// that are older than a day count as dropped.
    ///
    /// # Errors
    /// Those of the file system, and `WouldBlock` if another watcher has it.
    pub(crate) fn open(directory: &Path, now_ms: u64) -> io::Result<(Self, SpooledRest)> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let lock = WatcherLock::acquire(&directory.join(LOCK))?;
        let lock = lock.ok_or_else(|| io::Error::new(io::ErrorKind::WouldBlock, "another watcher has it"))?;
        let file = open(&directory.join(FILE))?;
        let mut bytes = Vec::new();
        (&file).take(FILE_BYTES + RECORD_BYTES as u64).read_to_end(&mut bytes)?;
        let mut rest = replay(&bytes);
        let waited = rest.observations.len();
        rest.observations.retain(|seen| is_kept(seen, now_ms));
        let old = waited - rest.observations.len();
        rest.dropped = rest.dropped.saturating_add(u64::try_from(old).unwrap_or(u64::MAX));
        let mut spool = Self { directory: directory.to_owned(), file, bytes: 0, _lock: lock };
        // Without what is over, and without a record that a crash cut.
        spool.rewrite(rest.observations.iter(), rest.dropped)?;
        Ok((spool, rest))
    }

    /// An observation waits.
    ///
    /// # Errors
    /// It is not in the file.
    pub(crate) fn added(&mut self, observation: &Observation) -> io::Result<()> {
        self.append(&record(ADDED, &observation.encode_to_vec()))
    }

    /// The oldest one was dropped.
    ///
    /// # Errors
    /// The file still has it.
    pub(crate) fn dropped(&mut self) -> io::Result<()> {
        self.append(&record(DROPPED, &[]))
    }

    /// The agent took so many of the oldest, and was told of so many that were dropped. `waiting` and `dropped` are left.
    ///
    /// # Errors
    /// The file still has them.
    pub(crate) fn taken<'o>(
        &mut self,
        count: usize,
        told: u64,
        waiting: impl ExactSizeIterator<Item = &'o Observation>,
        dropped: u64,
    ) -> io::Result<()> {
        if waiting.len() == 0 && dropped == 0 {
            self.file.set_len(0)?;
            self.bytes = 0;
            return Ok(());
        }
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.append(&record(TAKEN, &[count.to_be_bytes(), told.to_be_bytes()].concat()))?;
        if self.is_long() { self.rewrite(waiting, dropped) } else { Ok(()) }
    }

    /// Whether it should be written anew, without what is over.
    pub(crate) fn is_long(&self) -> bool {
        self.bytes > FILE_BYTES
    }

    /// Writes it anew.
    ///
    /// # Errors
    /// The file is as it was.
    pub(crate) fn rewrite<'o>(
        &mut self,
        waiting: impl Iterator<Item = &'o Observation>,
        dropped: u64,
    ) -> io::Result<()> {
        let mut bytes: Vec<u8> = waiting.flat_map(|one| record(ADDED, &one.encode_to_vec())).collect();
        if dropped > 0 {
            bytes.extend(record(COUNT, &dropped.to_be_bytes()));
        }
        let (path, new) = (self.directory.join(FILE), self.directory.join(NEW_FILE));
        let written = write_new(&new, &bytes).and_then(|file| std::fs::rename(&new, path).map(|()| file));
        match written {
            Ok(file) => {
                (self.file, self.bytes) = (file, bytes.len() as u64);
                Ok(())
            }
            Err(error) => {
                // A part of it takes room for nothing. It may not be there at all.
                let _ = std::fs::remove_file(&new);
                Err(error)
            }
        }
    }

    /// A record that cannot be written whole is taken back, so that those after it can be read.
    fn append(&mut self, record: &[u8]) -> io::Result<()> {
        let written = self.file.write_all_at(record, self.bytes);
        match written {
            Ok(()) => self.bytes += record.len() as u64,
            Err(_) => self.file.set_len(self.bytes)?,
        }
        written
    }
}

/// For this user alone, and never through a link.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = open(path)?;
    file.set_len(0)?;
    file.write_all(bytes)?;
    Ok(file)
}

fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + payload.len() + CHECK);
    bytes.push(kind);
    bytes.extend(u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend(payload);
    let check = Sha256::digest(&bytes);
    bytes.extend(&check[..CHECK]);
    bytes
}

/// What the records lead to, up to the first one that cannot be read.
fn replay(mut bytes: &[u8]) -> SpooledRest {
    let mut rest = SpooledRest::default();
    while let Some((kind, payload, after)) = next_record(bytes) {
        let number = |at: usize| payload.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes);
        let is_read = match kind {
            ADDED => Observation::decode(payload).map(|seen| rest.observations.push(seen)).is_ok(),
            TAKEN => number(0).zip(number(8)).map(|(count, told)| rest.take(count, told)).is_some(),
            DROPPED => {
                rest.take(1, 0);
                rest.dropped = rest.dropped.saturating_add(1);
                true
            }
            COUNT => number(0).map(|count| rest.dropped = rest.dropped.saturating_add(count)).is_some(),
            _ => false,
        };
        if !is_read {
            break;
        }
        bytes = after;
    }
    rest
}

impl SpooledRest {
    fn take(&mut self, count: u64, told: u64) {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(self.observations.len());
        self.observations.drain(..count);
        self.dropped = self.dropped.saturating_sub(told);
    }
}

/// The first record and what follows; none at the end, and none if it is cut or damaged.
fn next_record(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, length) = (*bytes.first()?, bytes.get(1..HEAD)?);
    let length = usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()?;
    let end = HEAD + Some(length).filter(|length| *length <= RECORD_BYTES)?;
    let (payload, check) = (bytes.get(HEAD..end)?, bytes.get(end..end + CHECK)?);
    let is_whole = Sha256::digest(&bytes[..end])[..CHECK] == *check;
    is_whole.then_some((kind, payload, &bytes[end + CHECK..]))
}

#[cfg(test)]
#[path = "spool_tests.rs"]
mod tests;
