//! Verifies a log: every record is unchanged and follows the one before it.

use std::io;
use std::path::PathBuf;

use crate::line::{self, ChainLink, Hash, RecordKind};
use crate::line_reader::{Line, LineReader};

/// What to verify.
#[derive(Debug, Clone)]
pub struct VerifyRequest {
    /// The files, oldest first.
    pub files: Vec<PathBuf>,
    /// Whether these are all files of the log. If so, the chain has to account for what is missing before the
    /// first.
    pub all: bool,
    /// The number and hash of a record, noted elsewhere, which has to be in the log.
    pub anchor: Option<(u64, Hash)>,
}

/// Where an intact chain begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainStart {
    /// With the very first record.
    FirstRecord,
    /// With this record; the chain itself says that the earlier ones were deleted.
    AfterDeleted(u64),
    /// With this record; the earlier files were not given.
    FirstGivenFile(u64),
}

/// An intact chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedChain {
    /// Where it begins.
    pub start: ChainStart,
    /// The number of files read.
    pub files: usize,
    /// Records in them.
    pub records: u64,
    /// The number and hash of the last one.
    pub head: (u64, Hash),
    /// Records that the log itself says are missing, because they could not be written in time.
    pub lost: u64,
    /// Further findings.
    pub notes: Vec<String>,
}

/// How a chain is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// A line was changed.
    Changed,
    /// Records are missing.
    Removed,
    /// A line was inserted.
    Inserted,
    /// Records are in another order.
    Reordered,
    /// The end of a file, or of the log, is missing.
    Truncated,
    /// The log was started anew, and nothing connects the new chain to the old one.
    Restarted,
}

impl Fault {
    /// The word for it in reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Inserted => "inserted",
            Self::Reordered => "reordered",
            Self::Truncated => "truncated",
            Self::Restarted => "begun_anew",
        }
    }
}

/// The first place where a chain is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenChain {
    /// The file.
    pub file: PathBuf,
    /// The line in it, starting at 1.
    pub line: u64,
    /// How it is broken.
    pub fault: Fault,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
    /// Records before it that are intact.
    pub records_before: u64,
}

/// Why a log could not be verified.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The chain is broken.
    #[error("{}:{}: {}: expected {}; found {}", .0.file.display(), .0.line, .0.fault.word(), .0.expected, .0.found)]
    Broken(Box<BrokenChain>),
    /// There is nothing to verify.
    #[error(
        "there is no record of an audit log there: name the directory that audit.dir names, or its files"
    )]
    Empty,
    /// It cannot be read.
    #[error("cannot read {}: {source}; read it as the user that the supervisor runs as, or as root", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl From<(PathBuf, io::Error)> for VerifyError {
    fn from((path, source): (PathBuf, io::Error)) -> Self {
        Self::Io { path, source }
    }
}

/// Verifies a chain line by line. Works while a supervisor writes to it.
///
/// # Errors
/// [`VerifyError`], with the first broken place.
pub fn verify(request: &VerifyRequest) -> Result<VerifiedChain, VerifyError> {
    Verifier::new(request).run()
}

/// The state of a verification.
struct Verifier<'r> {
    request: &'r VerifyRequest,
    lines: LineReader,
    /// The last record that follows from those before it, with its file and line.
    last: Option<(ChainLink, usize, u64)>,
    /// The first record's number and what it follows, unless it is the first of a chain.
    first: Option<(u64, Hash)>,
    /// Whether the chain accounts for the records before the first one.
    accounted: bool,
    records: u64,
    lost: u64,
    /// What the record after the first says about lost ones, if it gives a reason.
    lost_first: Option<String>,
    notes: Vec<String>,
    anchored: bool,
}

impl<'r> Verifier<'r> {
    fn new(request: &'r VerifyRequest) -> Self {
        Self {
            request,
            lines: LineReader::new(request.files.clone()),
            last: None,
            first: None,
            accounted: false,
            records: 0,
            lost: 0,
            lost_first: None,
            notes: Vec::new(),
            anchored: false,
        }
    }

    fn run(mut self) -> Result<VerifiedChain, VerifyError> {
        while let Some(line) = self.lines.next_line()? {
            if !line.has_newline && line.file + 1 == self.lines.files() {
                self.notes.push(
                    "the last line has no end: it is being written, or its write did not end".to_owned(),
                );
                break;
            }
            match line::parse(&line.bytes) {
                Ok(link) if line.has_newline => self.check_link(link, &line)?,
                Ok(link) => {
                    let found = format!("record {} without the end of its line, and another file", link.seq);
                    return Err(self.broken(
                        (line.file, line.number),
                        Fault::Truncated,
                        self.expected(),
                        found,
                    ));
                }
                Err(why) => {
                    let fault = if line.has_newline { self.fault_of_no_record()? } else { Fault::Truncated };
                    return Err(self.broken(
                        (line.file, line.number),
                        fault,
                        self.expected(),
                        why.to_string(),
                    ));
                }
            }
        }
        self.finish()
    }

    fn check_link(&mut self, link: ChainLink, line: &Line) -> Result<(), VerifyError> {
        match &self.last {
            None => self.first = (link.seq != 1 || link.prev != Hash::NONE).then_some((link.seq, link.prev)),
            Some((last, ..)) if link.seq == last.seq + 1 && link.prev == last.hash => {}
            Some(_) => return Err(self.misplaced_record(&link, line)?),
        }
        if let Some((seq, hash)) = self.request.anchor
            && seq == link.seq
        {
            if hash != link.hash {
                let expected = format!("record {seq} with the hash {hash}, as it was noted elsewhere");
                let found = format!("another record {seq}, with the hash {}", link.hash);
                return Err(self.broken((line.file, line.number), Fault::Changed, expected, found));
            }
            self.anchored = true;
        }
        match &link.kind {
            RecordKind::Lost { count, why } => {
                self.lost += count;
                if !why.is_empty() {
                    let said = statement(&link, *count, why);
                    if self.records == 1 {
                        self.lost_first = Some(said.clone());
                    }
                    self.notes.push(said);
                }
            }
            RecordKind::Recovered { cut_bytes } => self.notes.push(format!(
                "record {}: the file ended in an incomplete line, whose {cut_bytes} bytes were cut off",
                link.seq
            )),
            RecordKind::Deleted { through: Some(through), hash } => {
                self.accounted |=
                    self.first.is_some_and(|(seq, prev)| seq == through + 1 && Some(prev) == *hash);
            }
            _ => {}
        }
        self.records += 1;
        self.last = Some((link, line.file, line.number));
        Ok(())
    }

    fn finish(mut self) -> Result<VerifiedChain, VerifyError> {
        let Some((last, file, number)) = self.last.clone() else { return Err(VerifyError::Empty) };
        let begins = match self.first {
            None => ChainStart::FirstRecord,
            Some((seq, _)) if self.accounted => ChainStart::AfterDeleted(seq),
            Some((seq, _)) if !self.request.all => ChainStart::FirstGivenFile(seq),
            Some((seq, _)) => {
                let expected =
                    format!("record 1, or word further on that what came before record {seq} was deleted");
                let found = match self.lost_first.take() {
                    Some(said) => format!("record {seq}; {said}"),
                    None => format!("record {seq}, and no word of why it is the first"),
                };
                return Err(self.broken((0, 1), Fault::Removed, expected, found));
            }
        };
        if let Some((seq, hash)) = self.request.anchor.filter(|_| !self.anchored) {
            let expected = format!("record {seq} with the hash {hash}, as it was noted elsewhere");
            let found = format!("record {} as the last one", last.seq);
            let fault = if seq > last.seq { Fault::Truncated } else { Fault::Removed };
            return Err(self.broken((file, number), fault, expected, found));
        }
        if let (RecordKind::Closed { next }, true) = (&last.kind, self.request.all) {
            self.notes.push(format!("{next} is not there: it is being begun, or it was removed"));
        }
        let Self { records, lost, notes, lines, .. } = self;
        Ok(VerifiedChain {
            start: begins,
            files: lines.files(),
            records,
            head: (last.seq, last.hash),
            lost,
            notes,
        })
    }

    /// Classifies a record that does not follow from the one before it.
    fn misplaced_record(&mut self, link: &ChainLink, line: &Line) -> Result<VerifyError, VerifyError> {
        let Some((last, file, number)) = self.last.clone() else { return Err(VerifyError::Empty) };
        let expected = self.expected();
        let place = (line.file, line.number);
        let found = format!("record {}, which follows {}", link.seq, link.prev);
        if let RecordKind::Chain { why } = &link.kind {
            let found = format!("the first record of another chain, because {why}");
            return Ok(self.broken(place, Fault::Restarted, expected, found));
        }
        if link.seq == last.seq && link.prev == last.prev {
            let expected = format!("record {} to follow from the line before this one", link.seq);
            let found = format!("another record {}, which nothing follows from", last.seq);
            return Ok(self.broken((file, number), Fault::Inserted, expected, found));
        }
        let mut said = None;
        let fault = match self.true_successor(&last, &mut said)? {
            Some(_) if link.seq <= last.seq + 1 => Fault::Inserted,
            Some(there) => {
                let found = format!("{found}; record {} stands {there}", last.seq + 1);
                return Ok(self.broken(place, Fault::Reordered, expected, found));
            }
            None if link.seq == last.seq + 1 => {
                let expected =
                    format!("record {} to be the one that record {} follows from", last.seq, link.seq);
                let found = format!("another one, with the hash {}", last.hash);
                return Ok(self.broken((file, number), Fault::Changed, expected, found));
            }
            None if link.seq <= last.seq => Fault::Inserted,
            None if said.is_some() => {
                let found = format!("{found}; {}", said.unwrap_or_default());
                return Ok(self.broken(place, Fault::Removed, expected, found));
            }
            None if line.file > file && !matches!(last.kind, RecordKind::Closed { .. }) => {
                let expected = format!("{expected}, up to one that closes the file");
                let found = format!("the end of the file, and record {} in the next one", link.seq);
                return Ok(self.broken((file, number), Fault::Truncated, expected, found));
            }
            None => Fault::Removed,
        };
        Ok(self.broken(place, fault, expected, found))
    }

    /// Classifies a line that is not a record at all.
    fn fault_of_no_record(&mut self) -> Result<Fault, VerifyError> {
        let Some((last, ..)) = self.last.clone() else { return Ok(Fault::Changed) };
        Ok(if self.true_successor(&last, &mut None)?.is_some() { Fault::Inserted } else { Fault::Changed })
    }

    /// Searches the rest of the log for the record that follows `last`. Reads to the end. If the next line
    /// says why records are lost, puts that into `said`.
    fn true_successor(
        &mut self,
        last: &ChainLink,
        said: &mut Option<String>,
    ) -> Result<Option<String>, VerifyError> {
        let mut is_next = true;
        while let Some(line) = self.lines.next_line()? {
            let link = line::parse(&line.bytes);
            if let (true, Ok(link)) = (std::mem::take(&mut is_next), &link)
                && let RecordKind::Lost { count, why } = &link.kind
                && !why.is_empty()
            {
                *said = Some(statement(link, *count, why));
            }
            if link.is_ok_and(|link| link.seq == last.seq + 1 && link.prev == last.hash) {
                return Ok(Some(format!("in {}:{}", self.lines.path(line.file).display(), line.number)));
            }
        }
        Ok(None)
    }

    /// The record that should come next.
    fn expected(&self) -> String {
        match &self.last {
            None => "the first record".to_owned(),
            Some((last, ..)) => format!("record {}, which follows {}", last.seq + 1, last.hash),
        }
    }

    fn broken(
        &self,
        (file, line): (usize, u64),
        fault: Fault,
        expected: String,
        found: String,
    ) -> VerifyError {
        let file = self.lines.path(file).to_owned();
        VerifyError::Broken(Box::new(BrokenChain {
            file,
            line,
            fault,
            expected,
            found,
            records_before: self.records,
        }))
    }
}

/// What a record says about lost ones.
fn statement(link: &ChainLink, count: u64, why: &str) -> String {
    format!("record {} says that {count} records are lost: {why}", link.seq)
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
