//! Cuts a stream of bytes into lines without ever holding more than one bounded line.

/// One line, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'b> {
    /// Its first bytes.
    pub(crate) bytes: &'b [u8],
    /// How many more it had.
    pub(crate) cut: u64,
}

/// Collects bytes until a line is whole.
#[derive(Debug)]
pub(crate) struct Splitter {
    held: Vec<u8>,
    cut: u64,
    limit: usize,
}

impl Splitter {
    /// Lines of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { held: Vec::new(), cut: 0, limit }
    }

    /// Takes bytes and gives every line that ends in them.
    pub(crate) fn push(&mut self, mut bytes: &[u8], line: &mut dyn FnMut(Line<'_>)) {
        while let Some(end) = bytes.iter().position(|b| *b == b'\n') {
            self.hold(&bytes[..end]);
            bytes = &bytes[end + 1..];
            line(Line { bytes: without_return(&self.held), cut: self.cut });
            self.held.clear();
            self.cut = 0;
        }
        self.hold(bytes);
    }

    /// What has no line end yet, if there is anything.
    pub(crate) fn rest(&self) -> Option<Line<'_>> {
        (!self.held.is_empty()).then(|| Line { bytes: without_return(&self.held), cut: self.cut })
    }

    /// How long the line without an end is already.
    pub(crate) fn pending(&self) -> u64 {
        self.held.len() as u64 + self.cut
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = self.limit - self.held.len();
        let (kept, cut) = bytes.split_at(room.min(bytes.len()));
        self.held.extend_from_slice(kept);
        self.cut += cut.len() as u64;
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
