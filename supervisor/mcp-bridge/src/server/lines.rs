//! A server's standard output, split into messages.
//!
//! It should carry one JSON-RPC message a line. Banners and debug output are recognised by their first
//! character and left out; a line that is too large is read to its end but not stored.

use talon_bridge::text::cut;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::scan::Scan;

/// The largest message that is read, in bytes. Twice what can be passed on as an answer, because images are
/// described instead of passed on; a larger one becomes an error of the call that it answers.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// How much of a non-message line is shown.
const MAX_SHOWN_BYTES: usize = 500;
/// How much is read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The kinds of lines.
#[derive(Debug)]
pub(crate) enum Line {
    /// It looks like a message.
    Message(Vec<u8>),
    /// A message that is too large.
    TooLarge {
        /// All its bytes.
        bytes: u64,
        /// What the scan of its bytes found.
        scan: Scan,
    },
    /// Anything else; the beginning of the line.
    Text(String),
}

/// Reads lines.
pub(crate) struct Lines<R> {
    reader: R,
    chunk: Vec<u8>,
    /// The position in the current chunk.
    next: usize,
    line: Vec<u8>,
    bytes: u64,
    scan: Scan,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, chunk: Vec::new(), next: 0, line: Vec::new(), bytes: 0, scan: Scan::default() }
    }

    /// The next line that is not empty; `None` at the end. An unterminated last line counts.
    pub(crate) async fn next(&mut self) -> Option<Line> {
        loop {
            if self.next == self.chunk.len() {
                self.chunk.resize(CHUNK_BYTES, 0);
                let read = self.reader.read(&mut self.chunk).await.unwrap_or(0);
                self.chunk.truncate(read);
                self.next = 0;
                if read == 0 {
                    return self.finish();
                }
            }
            let rest = &self.chunk[self.next..];
            let (part, ended) = match rest.iter().position(|&byte| byte == b'\n') {
                Some(end) => (&rest[..end], true),
                None => (rest, false),
            };
            self.next += part.len() + usize::from(ended);
            self.bytes += part.len() as u64;
            self.scan.feed(part);
            let room = MAX_MESSAGE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            if self.is_too_large() {
                // It will not be stored, and may still be long.
                self.line = Vec::new();
            }
            if ended && let Some(line) = self.finish() {
                return Some(line);
            }
        }
    }

    fn is_too_large(&self) -> bool {
        self.bytes > MAX_MESSAGE_BYTES as u64 || self.scan.is_costly()
    }

    fn finish(&mut self) -> Option<Line> {
        let too_large = self.is_too_large();
        let line = std::mem::take(&mut self.line);
        let scan = std::mem::take(&mut self.scan);
        let bytes = std::mem::take(&mut self.bytes);
        if too_large {
            return Some(Line::TooLarge { bytes, scan });
        }
        let text = line.trim_ascii();
        match text.first()? {
            b'{' => Some(Line::Message(line)),
            _ => Some(Line::Text(cut(&String::from_utf8_lossy(text), MAX_SHOWN_BYTES))),
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    async fn read(bytes: &[u8]) -> Vec<Line> {
        let mut lines = Lines::new(bytes);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn banners_are_told_from_messages() {
        let all = read(b"Welcome!\r\n\n  \n{\"id\":1}\r\n[1]\n\xff\xfe\n{\"id\":2}").await;
        let shown: Vec<_> = all
            .iter()
            .map(|line| match line {
                Line::Message(bytes) => format!("message {}", String::from_utf8_lossy(bytes).trim()),
                Line::Text(text) => format!("text {text}"),
                Line::TooLarge { .. } => "too large".to_owned(),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "text Welcome!",
                "message {\"id\":1}",
                "text [1]",
                "text \u{fffd}\u{fffd}",
                "message {\"id\":2}"
            ]
        );
    }

    #[tokio::test]
    async fn a_line_that_is_too_large_is_not_kept_and_the_next_one_is_read() {
        let mut text = b"{\"id\":5,\"result\":\"".to_vec();
        text.resize(MAX_MESSAGE_BYTES + 1000, b'x');
        text.extend_from_slice(b"\"}\n{\"id\":6}\n");
        let mut lines = Lines::new(text.as_slice());
        let Some(Line::TooLarge { bytes, scan }) = lines.next().await else { panic!("too large") };
        assert_eq!(bytes, MAX_MESSAGE_BYTES as u64 + 1002);
        assert_eq!(scan.answered(), Some(NumberOrString::Number(5)));
        assert_eq!(lines.line.capacity(), 0);
        assert!(matches!(lines.next().await, Some(Line::Message(_))));
    }

    #[tokio::test]
    async fn a_long_text_is_shown_by_its_beginning() {
        let all = read(&[b'y'; 10_000]).await;
        let [Line::Text(text)] = all.as_slice() else { panic!("{all:?}") };
        assert!(text.len() < MAX_SHOWN_BYTES + 8, "{}", text.len());
    }
}
