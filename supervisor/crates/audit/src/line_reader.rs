//! Reads files line by line, whatever they contain.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use crate::line::MAX_LINE_BYTES;

/// A line and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The index of its file in the list.
    pub file: usize,
    /// Its number in that file, starting at 1.
    pub number: u64,
    /// The line without its line break, and without what exceeds [`MAX_LINE_BYTES`].
    pub bytes: Vec<u8>,
    /// Whether a line break ends it.
    pub has_newline: bool,
}

/// Reads files line by line, and holds one line at a time.
#[derive(Debug)]
pub struct LineReader {
    files: Vec<PathBuf>,
    next_file: usize,
    reader: Option<BufReader<File>>,
    number: u64,
}

impl LineReader {
    /// Reads these files, in this order.
    #[must_use]
    pub fn new(files: Vec<PathBuf>) -> Self {
        Self { files, next_file: 0, reader: None, number: 0 }
    }

    /// The path of the file with this index.
    #[must_use]
    pub fn path(&self, file: usize) -> &Path {
        &self.files[file]
    }

    /// The number of files.
    #[must_use]
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// The next line; `None` after the last one.
    ///
    /// # Errors
    /// The error of opening or reading a file, with its path.
    pub fn next_line(&mut self) -> Result<Option<Line>, (PathBuf, io::Error)> {
        loop {
            let Some(reader) = &mut self.reader else {
                let Some(path) = self.files.get(self.next_file) else { return Ok(None) };
                let file = File::open(path).map_err(|error| (path.clone(), error))?;
                self.reader = Some(BufReader::new(file));
                self.next_file += 1;
                self.number = 0;
                continue;
            };
            let file = self.next_file - 1;
            let mut bytes = Vec::new();
            let read = bounded_line(reader, &mut bytes).map_err(|error| (self.files[file].clone(), error))?;
            match read {
                Some(ended) => {
                    self.number += 1;
                    return Ok(Some(Line { file, number: self.number, bytes, has_newline: ended }));
                }
                None => self.reader = None,
            }
        }
    }
}

/// Reads a line. Keeps at most [`MAX_LINE_BYTES`] of it and skips the rest. `None` at the end of the file;
/// otherwise whether the line has a line break.
fn bounded_line(reader: &mut impl BufRead, to: &mut Vec<u8>) -> io::Result<Option<bool>> {
    let room = MAX_LINE_BYTES as u64 + 1;
    if reader.by_ref().take(room).read_until(b'\n', to)? == 0 {
        return Ok(None);
    }
    if to.last() == Some(&b'\n') {
        to.pop();
        return Ok(Some(true));
    }
    if to.len() as u64 == room {
        return Ok(Some(reader.skip_until(b'\n')? > 0));
    }
    Ok(Some(false))
}
