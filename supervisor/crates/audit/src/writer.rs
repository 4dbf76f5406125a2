//! Appends records, closes a file that is full and begins the next.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::damage::{ChainEnd, Continuation, Damage, count_lines};
use crate::directory::{Directory, DirectoryError, file_name};
use crate::line::{self, ChainLink, Hash, RecordKind};
use crate::record::Body;
use crate::tail::{self, PartialLine, Tail};

/// How a log is kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory; created with mode 0700 if it is missing.
    pub dir: PathBuf,
    /// The size at which a file is closed; the last record may exceed it.
    pub file_bytes: u64,
    /// How many closed files are kept; 0 keeps all.
    pub files: u32,
    /// How long a call may wait for its record to be written.
    pub wait: Duration,
    /// The version of the program that writes.
    pub version: String,
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process writes to it.
    #[error("another process writes to {}: end it, or set another audit.dir", .0.display())]
    Busy(PathBuf),
    /// A step failed.
    #[error("cannot write to {}: {source}; check its owner and mode, and whether there is room", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

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

/// What could not be written before the log was closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unwritten {
    /// Calls and operations.
    pub(crate) records: u64,
    /// Lost records that were to be noted.
    pub(crate) lost: u64,
}

/// A log that was opened.
#[derive(Debug)]
pub(crate) struct OpenedLog {
    pub(crate) writer: Writer,
    /// What the log's owner should know.
    pub(crate) findings: Vec<String>,
    /// What happened to the file that this process wrote before.
    pub(crate) damage: Option<Damage>,
}

impl Writer {
    /// Continues where the last process stopped, or begins a chain. If this process wrote before and less
    /// than that is left, the chain continues from where it stopped.
    pub(crate) fn open(settings: &Settings, from: &Continuation) -> Result<OpenedLog, OpenError> {
        let failed = |source| OpenError::Io { path: settings.dir.clone(), source };
        let directory = Directory::open(&settings.dir).map_err(|error| match error {
            DirectoryError::Busy => OpenError::Busy(settings.dir.clone()),
            DirectoryError::Io(source) => failed(source),
        })?;
        let mut findings = Vec::new();
        if directory.is_open_to_others() {
            findings.push(format!(
                "others than its owner may write to {}: `chmod go-w` it",
                directory.path().display()
            ));
        }
        let (mut writer, damage) = match &from.end {
            Some(end) => Self::resume_after(end, directory, settings, &mut findings).map_err(failed)?,
            None => (Self::resume(directory, settings, &mut findings).map_err(failed)?, None),
        };
        // Best effort: a disk without room for it has none for the first records either, which is reported.
        let _ = writer.directory.reserve();
        writer.append(
            &Body::Started { version: settings.version.clone(), pid: std::process::id() },
            unix_ms(SystemTime::now()),
        );
        if from.unnoted > 0 {
            writer.append_lost(from.unnoted, NOT_WRITTEN.to_owned());
        }
        writer.flush().map_err(failed)?;
        Ok(OpenedLog { writer, findings, damage })
    }

    /// Continues from the end that this process wrote, in another file if that end is not there any more.
    /// Another process may have continued the chain meanwhile, as at a handover.
    fn resume_after(
        end: &ChainEnd,
        directory: Directory,
        settings: &Settings,
        findings: &mut Vec<String>,
    ) -> io::Result<(Self, Option<Damage>)> {
        let mut numbers = directory.numbers()?;
        let newest = numbers.last().copied().unwrap_or_default();
        let mut whole_lines = 0;
        while let Some(number) = numbers.pop() {
            let mut file = directory.open_to_append(number)?;
            match tail::read_tail(&mut file)? {
                Tail::Whole { last, .. }
                    if last.seq > end.seq || (last.seq, last.hash) == (end.seq, end.hash) =>
                {
                    return Ok((Self::resume(directory, settings, findings)?, None));
                }
                _ if number == end.number => whole_lines = count_lines(&mut file)?,
                _ => {}
            }
        }
        let name = file_name(end.number);
        let damage = Damage {
            records: end.records().saturating_sub(whole_lines),
            why: if whole_lines == 0 {
                format!("{name} was removed or emptied after it was written")
            } else {
                format!("{name} was shortened or changed after it was written")
            },
        };
        let file = directory.create(newest.max(end.number) + 1)?;
        let number = newest.max(end.number);
        let mut writer = Self::positioned(directory, settings, (file, number), 0, (end.seq, end.hash));
        writer.begin_file(name);
        writer.append_lost(damage.records, damage.why.clone());
        Ok((writer, Some(damage)))
    }

    fn resume(directory: Directory, settings: &Settings, findings: &mut Vec<String>) -> io::Result<Self> {
        let mut numbers = directory.numbers()?;
        // A file without a whole line was just created when its process ended. The chain's end is in the one
        // before it.
        let mut emptied = None;
        while let Some(number) = numbers.pop() {
            let mut file = directory.open_to_append(number)?;
            match tail::read_tail(&mut file)? {
                Tail::Empty { cut } => {
                    directory.remove(number)?;
                    emptied = cut.or(emptied);
                }
                Tail::Whole { last, cut } => {
                    return Self::continue_file(
                        directory,
                        settings,
                        (file, number),
                        last,
                        cut.or(emptied),
                        findings,
                    );
                }
                Tail::Damaged { why } => {
                    let why = format!("{} cannot be continued: {why}", file_name(number));
                    findings.push(format!("{why}; a new chain begins (see `talon audit verify`)"));
                    return Self::begin(directory, settings, number + 1, why);
                }
            }
        }
        Self::begin(directory, settings, 1, "there was none".to_owned())
    }

    fn begin(directory: Directory, settings: &Settings, number: u64, why: String) -> io::Result<Self> {
        let file = directory.create(number)?;
        let mut writer = Self::positioned(directory, settings, (file, number), 0, (0, Hash::NONE));
        writer.append(&Body::Chain { file: number, why }, unix_ms(SystemTime::now()));
        Ok(writer)
    }

    fn continue_file(
        directory: Directory,
        settings: &Settings,
        (file, number): (File, u64),
        last: ChainLink,
        cut: Option<PartialLine>,
        findings: &mut Vec<String>,
    ) -> io::Result<Self> {
        let mut bytes = file.metadata()?.len();
        let first_seq = tail::read_first(&file)?.map_or(last.seq, |first| first.seq);
        // An incomplete line at offset 0 is from the next file, which was removed.
        if let Some(cut) = cut.as_ref().filter(|cut| cut.at > 0) {
            file.set_len(cut.at)?;
            bytes = cut.at;
        }
        let closed = matches!(last.kind, RecordKind::Closed { .. });
        let mut writer = Self::positioned(directory, settings, (file, number), bytes, (last.seq, last.hash));
        writer.first_seq = first_seq;
        if closed {
            // The file was closed, and the process ended before it created the next one.
            let file = writer.directory.create(number + 1)?;
            writer.switch(file);
        }
        if let Some(PartialLine { bytes, sha256, .. }) = cut {
            findings.push(format!(
                "{bytes} bytes at the end were no whole record and were cut off: a write did not end, as at a crash or on a full disk"
            ));
            let body = Body::Recovered { cut_bytes: bytes, cut_sha256: sha256 };
            writer.append(&body, unix_ms(SystemTime::now()));
        }
        Ok(writer)
    }

    fn positioned(
        directory: Directory,
        settings: &Settings,
        (file, number): (File, u64),
        bytes: u64,
        (seq, head): (u64, Hash),
    ) -> Self {
        let Settings { file_bytes, files, .. } = *settings;
        let (pending, written, pending_records, unsynced, next) = (Vec::new(), 0, Vec::new(), true, None);
        Self {
            directory,
            file,
            number,
            bytes,
            first_seq: seq + 1,
            seq,
            head,
            head_before: head,
            pending,
            written,
            pending_records,
            unsynced,
            next,
            file_bytes,
            files,
        }
    }

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

    /// Closes the log in order.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.append(&Body::Stopped { pid: std::process::id() }, unix_ms(SystemTime::now()));
        self.flush()?;
        self.file.sync_data()
    }

    /// Closes a log that takes no more writes, and returns what is not in it, and whether it says so.
    /// `queued` is what was not even appended. The file then ends in a whole record; the reserve gives room
    /// for the last ones.
    pub(crate) fn close_incomplete(&mut self, queued: Unwritten) -> (Unwritten, bool) {
        let rewound = self.rewind();
        // If the end of the file cannot be read, none of what was to be written counts as written.
        let end = rewound.as_ref().map_or(self.first_seq.saturating_sub(1), |()| self.seq);
        let mut missing = queued;
        for pending in self.pending_records.iter().filter(|pending| pending.seq > end) {
            missing.records += pending.records;
            missing.lost += pending.lost;
        }
        self.clear_pending();
        let mut is_noted = false;
        if rewound.is_ok() {
            let (bytes, seq, head) = (self.bytes, self.seq, self.head);
            let count = missing.records + missing.lost;
            if count > 0 {
                self.append_lost(count, NOT_WRITTEN.to_owned());
            }
            is_noted = self.write_last().is_ok();
            if !is_noted {
                // As before: a torn line at the end would look like a crash.
                let _ = self.file.set_len(bytes);
                (self.bytes, self.seq, self.head) = (bytes, seq, head);
                self.clear_pending();
            }
        }
        (missing, is_noted)
    }

    fn write_last(&mut self) -> io::Result<()> {
        // Without a reserve there may be room all the same.
        let _ = self.directory.release_reserve();
        self.close()
    }

    /// Goes back to the last whole record in the file, and cuts off what follows it.
    fn rewind(&mut self) -> io::Result<()> {
        let cut = match tail::read_tail(&mut self.file)? {
            Tail::Whole { last, cut } => {
                (self.seq, self.head) = (last.seq, last.hash);
                cut
            }
            Tail::Empty { cut } => {
                (self.seq, self.head) = (self.first_seq.saturating_sub(1), self.head_before);
                cut
            }
            Tail::Damaged { why } => return Err(io::Error::other(why)),
        };
        if let Some(cut) = cut {
            self.file.set_len(cut.at)?;
        }
        self.bytes = self.file.metadata()?.len();
        Ok(())
    }
}

/// The system time, which may jump; records are ordered by their number.
pub(crate) fn unix_ms(at: SystemTime) -> u64 {
    u64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
