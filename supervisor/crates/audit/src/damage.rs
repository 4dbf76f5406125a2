//! What happened to a file while it was being written, or since.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _};

use crate::line::Hash;

/// The end of the chain as this process wrote it. It outlives the open file, so that the chain continues from
/// it whatever happened to the file.
#[derive(Debug, Clone)]
pub(crate) struct ChainEnd {
    /// The number of the file.
    pub(crate) number: u64,
    /// The number of the file's first record.
    pub(crate) first_seq: u64,
    /// The number of the last record.
    pub(crate) seq: u64,
    /// The hash of the last record.
    pub(crate) hash: Hash,
}

impl ChainEnd {
    /// The number of records in the file.
    pub(crate) fn records(&self) -> u64 {
        (self.seq + 1).saturating_sub(self.first_seq)
    }
}

/// What a log that is opened again has to continue from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Continuation {
    /// Where this process stopped, if it wrote before.
    pub(crate) end: Option<ChainEnd>,
    /// Lost records that no record notes yet.
    pub(crate) unnoted: u64,
}

/// Records that were written and are not there any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Their number.
    pub(crate) records: u64,
    /// What happened to which file.
    pub(crate) why: String,
}

impl Damage {
    /// For the operator, with what to do next.
    pub(crate) fn message(&self) -> String {
        format!(
            "{}: {} records are lost, and the log continues in another file; see who can write to the directory, and `talon audit verify`",
            self.why, self.records
        )
    }
}

/// The number of whole lines of a file. Reads all of it: it has the size of one file of the log.
pub(crate) fn count_lines(file: &mut File) -> io::Result<u64> {
    file.rewind()?;
    let mut reader = BufReader::new(file);
    let mut lines = 0;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(lines);
        }
        lines += buffer.iter().filter(|byte| **byte == b'\n').count() as u64;
        let read = buffer.len();
        reader.consume(read);
    }
}
