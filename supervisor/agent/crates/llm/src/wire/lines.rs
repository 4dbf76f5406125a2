//! Lines of a stream, and NDJSON.

use super::{Frame, Framing, TooLongError};
use crate::limits::MAX_EVENT_BYTES;

/// What ends a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineBreaks {
    /// LF. A CR before it is white space of the JSON.
    Lf,
    /// LF, CR or both, as in server-sent events.
    Any,
}

/// Splits bytes into lines. Bytes are put together before they are read as text, so that a character may
/// arrive in pieces.
pub(crate) struct Lines {
    breaks: LineBreaks,
    line: Vec<u8>,
    /// The break was a CR: an LF after it belongs to it.
    after_cr: bool,
    max_bytes: usize,
}

impl Lines {
    pub(crate) fn new(breaks: LineBreaks) -> Self {
        Self { breaks, line: Vec::new(), after_cr: false, max_bytes: MAX_EVENT_BYTES }
    }

    #[cfg(test)]
    pub(crate) fn bounded(breaks: LineBreaks, max_bytes: usize) -> Self {
        Self { max_bytes, ..Self::new(breaks) }
    }

    /// Takes more bytes; `each` gets every line without its break.
    pub(crate) fn split(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), TooLongError>,
    ) -> Result<(), TooLongError> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let is_break = |byte: &u8| *byte == b'\n' || (self.breaks == LineBreaks::Any && *byte == b'\r');
            let Some(at) = bytes.iter().position(is_break) else {
                return self.keep(bytes);
            };
            self.after_cr = bytes[at] == b'\r';
            self.keep(&bytes[..at])?;
            each(&self.line)?;
            self.line.clear();
            bytes = &bytes[at + 1..];
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), TooLongError> {
        if self.line.len() + bytes.len() > self.max_bytes {
            return Err(TooLongError);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }
}

/// NDJSON: each line is a frame, empty ones are none.
impl Framing for Lines {
    fn feed(&mut self, bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), TooLongError> {
        self.split(bytes, |line| {
            frames.extend(frame(line));
            Ok(())
        })
    }

    fn end(&mut self, frames: &mut Vec<Frame>) {
        frames.extend(frame(&std::mem::take(&mut self.line)));
    }
}

fn frame(line: &[u8]) -> Option<Frame> {
    let data = String::from_utf8_lossy(line).trim().to_owned();
    (!data.is_empty()).then(|| Frame { event: String::new(), data })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::new(LineBreaks::Lf);
        let mut frames = Vec::new();
        for chunk in chunks {
            lines.feed(chunk, &mut frames).expect("short lines");
        }
        lines.end(&mut frames);
        frames.into_iter().map(|frame| frame.data).collect()
    }

    #[test]
    fn a_last_line_without_its_break_is_given() {
        assert_eq!(read(&[b"{\"a\":1}\r\n\n{\"b\"", b":2}"]), ["{\"a\":1}", "{\"b\":2}"]);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = Lines::bounded(LineBreaks::Lf, 8);
        let mut frames = Vec::new();
        assert_eq!(lines.feed(b"12345678\n", &mut frames), Ok(()));
        assert_eq!(lines.feed(b"12345", &mut frames), Ok(()));
        assert_eq!(lines.feed(b"6789", &mut frames), Err(TooLongError));
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_are_cut(
            texts in prop::collection::vec("[a-zäß→😀 ]{0,12}", 0..6),
            cuts in prop::collection::vec(0_usize..90, 0..8),
        ) {
            let whole = texts.join("\n").into_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> = cuts.windows(2).map(|pair| &whole[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&chunks), read(&[&whole]));
        }
    }
}
