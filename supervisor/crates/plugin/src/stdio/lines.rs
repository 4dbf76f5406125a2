//! Splits a byte stream into lines, with at most one bounded line in memory.

/// One line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'b> {
    /// The first bytes.
    pub(crate) bytes: &'b [u8],
    /// How many further bytes were cut off.
    pub(crate) cut: u64,
}

/// Collects bytes until a line is complete.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    buffer: Vec<u8>,
    cut: u64,
    limit: usize,
}

impl LineSplitter {
    /// Lines of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), cut: 0, limit }
    }

    /// Adds bytes and passes on every line that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], line: &mut dyn FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            self.append(&bytes[..end]);
            bytes = &bytes[end + 1..];
            line(Line { bytes: strip_carriage_return(&self.buffer), cut: self.cut });
            self.buffer.clear();
            self.cut = 0;
        }
        self.append(bytes);
    }

    /// The incomplete line, if there is one.
    pub(crate) fn rest(&self) -> Option<Line<'_>> {
        (!self.buffer.is_empty()).then(|| Line { bytes: strip_carriage_return(&self.buffer), cut: self.cut })
    }

    /// The length of the incomplete line so far.
    pub(crate) fn pending(&self) -> u64 {
        self.buffer.len() as u64 + self.cut
    }

    fn append(&mut self, bytes: &[u8]) {
        let room = self.limit - self.buffer.len();
        let (kept, cut) = bytes.split_at(room.min(bytes.len()));
        self.buffer.extend_from_slice(kept);
        self.cut += cut.len() as u64;
    }
}

fn strip_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
