//! Opens a log: continues the chain where it ends, or begins one.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use super::{NOT_WRITTEN, Writer};
use crate::clock::unix_ms;
use crate::damage::{ChainEnd, Continuation, Damage, count_lines};
use crate::directory::{Directory, DirectoryError, file_name};
use crate::line::{ChainLink, Hash, RecordKind};
use crate::record::Body;
use crate::settings::Settings;
use crate::tail::{self, PartialLine, Tail};

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
}
