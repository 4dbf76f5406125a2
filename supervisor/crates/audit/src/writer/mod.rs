//! Appends records, closes a file that is full and begins the next.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::SystemTime;

use crate::clock::unix_ms;
use crate::damage::{ChainEnd, Damage, count_lines};
use crate::directory::{Directory, file_name};
use crate::line::{self, Hash};
use crate::record::Body;
use crate::tail::{self, Tail};

pub(crate) mod close;
pub(crate) mod open;

/// The end of a chain, and the records that are not in the file yet.
#[derive(Debug)]
pub(crate) struct Writer {
    directory: Directory,
    file: File,
    number: u64,
    /// The size of the file, including pending bytes.
    bytes: u64,
    /// The number of the first record of this file.
    first_seq: u64,
    seq: u64,
    head: Hash,
    /// The head when this file was begun.
    head_before: Hash,
    /// Whole lines, of which `written` bytes are in the file. A failed write is continued where it stopped.
    pending: Vec<u8>,
    written: usize,
    /// What the pending lines stand for.
    pending_records: Vec<PendingRecord>,
    /// Whether something was written since the last [`Writer::sync`].
    unsynced: bool,
    /// The next file, once this one's last record was made.
    next: Option<File>,
    file_bytes: u64,
    files: u32,
}

/// Why records are missing at the end of a log that could not be written when it was closed.
const NOT_WRITTEN: &str = "the log could not be written when it was closed";

/// What a pending line stands for.
#[derive(Debug)]
struct PendingRecord {
    seq: u64,
    /// 1 for a call or an operation.
    records: u64,
    /// The lost records that it notes.
    lost: u64,
}

impl Writer {
    /// The file that is being written.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join(file_name(self.number))
    }

    /// Adds a record to the end of the chain; [`Writer::settle`] writes it to the file.
    pub(crate) fn append(&mut self, body: &Body, unix_ms: u64) {
        let before = self.pending.len();
        self.seq += 1;
        self.head = line::seal(self.seq, unix_ms, body, self.head, &mut self.pending);
        self.bytes += (self.pending.len() - before) as u64;
        let (records, lost) = match body {
            Body::Call(_) | Body::Operation(_) => (1, 0),
            Body::Lost { count, .. } => (0, *count),
            _ => (0, 0),
        };
        self.pending_records.push(PendingRecord { seq: self.seq, records, lost });
    }

    /// The end of the chain, as far as it is in the file.
    pub(crate) fn end(&self) -> ChainEnd {
        ChainEnd { number: self.number, first_seq: self.first_seq, seq: self.seq, hash: self.head }
    }

    #[cfg(test)]
    pub(crate) fn exchange_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }

    /// Whether more can be appended right away: nothing is pending, and the file is not full.
    pub(crate) fn has_room(&self) -> bool {
        self.pending.is_empty() && self.next.is_none() && self.bytes < self.file_bytes
    }

    /// Whether something is not synced to the disk yet.
    pub(crate) fn is_unsynced(&self) -> bool {
        self.unsynced
    }

    /// Writes what is pending, and nothing else. After an error the next attempt continues where this one
    /// stopped.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.written < self.pending.len() {
            match self.file.write(&self.pending[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count;
                    self.unsynced = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.clear_pending();
        Ok(())
    }

    fn clear_pending(&mut self) {
        self.pending.clear();
        self.pending_records.clear();
        self.written = 0;
    }

    /// Syncs what was written to the disk. If the file was removed or shortened meanwhile, continues in
    /// another one.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the directory is gone: then writing cannot continue.
    pub(crate) fn sync(&mut self) -> io::Result<Option<Damage>> {
        if self.unsynced {
            self.file.sync_data()?;
            self.unsynced = false;
        }
        let Some(damage) = self.find_damage()? else { return Ok(None) };
        let file = self.directory.create(self.number + 1)?;
        self.switch(file);
        self.append_lost(damage.records, damage.why.clone());
        self.flush()?;
        Ok(Some(damage))
    }

    /// Whether the file is where it was, and as long as it has become.
    fn find_damage(&mut self) -> io::Result<Option<Damage>> {
        if !self.directory.is_in_place()? {
            return Err(io::ErrorKind::NotFound.into());
        }
        let name = file_name(self.number);
        let records = self.end().records();
        if !self.directory.contains(self.number, &self.file)? {
            return Ok(Some(Damage { records, why: format!("{name} was removed while it was written to") }));
        }
        let expected = self.bytes - (self.pending.len() - self.written) as u64;
        if self.file.metadata()?.len() >= expected {
            return Ok(None);
        }
        let left = count_lines(&mut self.file)?;
        let records = records.saturating_sub(left);
        Ok(Some(Damage { records, why: format!("{name} was shortened while it was written to") }))
    }

    /// Writes what is pending, and begins the next file if this one is full. After an error nothing may be
    /// appended until another attempt succeeds.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.next.is_none() {
            if self.bytes < self.file_bytes {
                return Ok(());
            }
            // Must come first: without the next file this one is not closed.
            self.next = Some(self.directory.create(self.number + 1)?);
            self.append(&Body::Closed { next: file_name(self.number + 1) }, unix_ms(SystemTime::now()));
            self.flush()?;
        }
        self.file.sync_data()?;
        if let Some(next) = self.next.take() {
            self.switch(next);
        }
        self.flush()?;
        self.delete_oldest()
    }

    fn switch(&mut self, next: File) {
        let continues = file_name(self.number);
        self.file = next;
        self.begin_file(continues);
    }

    fn begin_file(&mut self, continues: String) {
        self.number += 1;
        self.bytes = 0;
        self.first_seq = self.seq + 1;
        self.head_before = self.head;
        self.unsynced = true;
        self.append(&Body::File { file: self.number, continues }, unix_ms(SystemTime::now()));
    }

    fn append_lost(&mut self, count: u64, why: String) {
        self.append(&Body::Lost { count, why }, unix_ms(SystemTime::now()));
    }

    /// Records a deletion before it happens, so that a verification finds the reason for the gap.
    fn delete_oldest(&mut self) -> io::Result<()> {
        let numbers = self.directory.numbers()?;
        let closed = numbers.len().saturating_sub(1);
        let surplus = if self.files == 0 { 0 } else { closed.saturating_sub(self.files as usize) };
        for number in numbers.into_iter().take(surplus) {
            let last = match tail::read_tail(&mut self.directory.open_to_append(number)?)? {
                Tail::Whole { last, .. } => Some(last),
                Tail::Empty { .. } | Tail::Damaged { .. } => None,
            };
            let body = Body::Deleted {
                file: file_name(number),
                through: last.as_ref().map(|last| last.seq),
                through_hash: last.map(|last| last.hash.to_string()),
            };
            self.append(&body, unix_ms(SystemTime::now()));
            self.flush()?;
            self.file.sync_data()?;
            self.directory.remove(number)?;
        }
        Ok(())
    }
}
