//! Appends records, closes a file that is full and begins the next.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    seq: u64,
    head: Hash,
    /// Whole lines, of which `written` bytes are in the file. A failed write is continued where it stopped.
    pending: Vec<u8>,
    written: usize,
    /// Whether something was written since the last [`Writer::sync`].
    unsynced: bool,
    /// The next file, once this one's last record was made.
    next: Option<File>,
    file_bytes: u64,
    files: u32,
}

/// What the log's owner should know about a log that was opened.
pub(crate) type Findings = Vec<String>;

impl Writer {
    /// Continues where the last process stopped, or begins a chain.
    pub(crate) fn open(settings: &Settings) -> Result<(Self, Findings), OpenError> {
        let failed = |source| OpenError::Io { path: settings.dir.clone(), source };
        let directory = Directory::open(&settings.dir).map_err(|error| match error {
            DirectoryError::Busy => OpenError::Busy(settings.dir.clone()),
            DirectoryError::Io(source) => failed(source),
        })?;
        let mut findings = Findings::new();
        if directory.is_open_to_others() {
            findings.push(format!(
                "others than its owner may write to {}: `chmod go-w` it",
                directory.path().display()
            ));
        }
        let mut writer = Self::resume(directory, settings, &mut findings).map_err(failed)?;
        writer.append(
            &Body::Started { version: settings.version.clone(), pid: std::process::id() },
            unix_ms(SystemTime::now()),
        );
        writer.flush().map_err(failed)?;
        Ok((writer, findings))
    }

    fn resume(directory: Directory, settings: &Settings, findings: &mut Findings) -> io::Result<Self> {
        let mut numbers = directory.numbers()?;
        // A file without a whole line was just created when its process ended. The chain's end is in the one before it.
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
        findings: &mut Findings,
    ) -> io::Result<Self> {
        let mut bytes = file.metadata()?.len();
        // An incomplete line at offset 0 is from the next file, which was removed.
        if let Some(cut) = cut.as_ref().filter(|cut| cut.at > 0) {
            file.set_len(cut.at)?;
            bytes = cut.at;
        }
        let closed = matches!(last.kind, RecordKind::Closed { .. });
        let mut writer = Self::positioned(directory, settings, (file, number), bytes, (last.seq, last.hash));
        if closed {
            // The file was closed, and the process ended before it created the next one.
            let file = writer.directory.create(number + 1)?;
            writer.switch(file);
        }
        if let Some(PartialLine { bytes, sha256, .. }) = cut {
            findings.push(format!(
                "{bytes} bytes at the end were no whole record, as after a crash, and were cut off"
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
        let (pending, written, unsynced, next) = (Vec::new(), 0, true, None);
        Self {
            directory,
            file,
            number,
            bytes,
            seq,
            head,
            pending,
            written,
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

    /// Writes what is pending, and nothing else. After an error the next attempt continues where this one stopped.
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
        self.pending.clear();
        self.written = 0;
        Ok(())
    }

    /// Syncs what was written to the disk. If the file was removed meanwhile, begins another one and returns a message
    /// about it.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the directory is gone: then writing cannot continue.
    pub(crate) fn sync(&mut self) -> io::Result<Option<String>> {
        if !self.unsynced {
            return Ok(None);
        }
        self.file.sync_data()?;
        self.unsynced = false;
        if self.file.metadata()?.nlink() > 0 {
            return Ok(None);
        }
        let gone = self.path();
        let file = self.directory.create(self.number + 1)?;
        self.switch(file);
        self.flush()?;
        Ok(Some(format!("somebody removed {} while it was written to; its records are gone", gone.display())))
    }

    /// Writes what is pending, and begins the next file if this one is full. After an error nothing may be appended
    /// until another attempt succeeds.
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
        self.number += 1;
        self.file = next;
        self.bytes = 0;
        self.unsynced = true;
        self.append(&Body::File { file: self.number, continues }, unix_ms(SystemTime::now()));
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
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.append(&Body::Stopped { pid: std::process::id() }, unix_ms(SystemTime::now()));
        self.flush()?;
        self.file.sync_data()
    }
}

/// The system time, which may jump; records are ordered by their number.
pub(crate) fn unix_ms(at: SystemTime) -> u64 {
    u64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
