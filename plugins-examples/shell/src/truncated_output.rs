//! Keeps the first and the last part of an output of any length.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How much of one output is kept, in bytes: both outputs together stay below the host's 64 KiB.
pub(crate) const MAX_OUTPUT_BYTES: usize = 24 << 10;

/// How much of a line is shown while the command runs; hosts keep no more.
const MAX_LINE_BYTES: usize = 4096;

/// The kept parts of an output.
#[derive(Debug, Default)]
pub(crate) struct TruncatedOutput {
    first: Vec<u8>,
    last: VecDeque<u8>,
    /// How many bytes between the two parts were dropped.
    left_out: u64,
}

impl TruncatedOutput {
    const HALF: usize = MAX_OUTPUT_BYTES / 2;

    /// Reads to the end, and gives each whole line to `show`. What has been read stays if this future is dropped.
    pub(crate) async fn read(&mut self, mut from: impl AsyncRead + Unpin, show: impl Fn(&str)) {
        let mut buffer = vec![0; 16 << 10];
        let mut open_line = OpenLine::default();
        // An output that cannot be read any more counts as ended.
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            self.add(&buffer[..count]);
            open_line.add(&buffer[..count], &show);
        }
        open_line.finish(&show);
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = Self::HALF - self.first.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.first.extend_from_slice(first);
        self.last.extend(rest);
        let over = self.last.len().saturating_sub(Self::HALF);
        self.last.drain(..over);
        self.left_out += over as u64;
    }

    /// As text, with a note where something was dropped.
    pub(crate) fn text(&mut self) -> String {
        let last = self.last.make_contiguous();
        if self.left_out == 0 {
            return String::from_utf8_lossy(&[&self.first, &*last].concat()).into_owned();
        }
        let (first, last) = (String::from_utf8_lossy(&self.first), String::from_utf8_lossy(last));
        format!("{first}\n[… {} bytes left out …]\n{last}", self.left_out)
    }
}

/// The beginning of a line whose end has not been read.
#[derive(Debug, Default)]
struct OpenLine(Vec<u8>);

impl OpenLine {
    fn add(&mut self, bytes: &[u8], show: &impl Fn(&str)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE_BYTES.saturating_sub(self.0.len());
            self.0.extend(piece.iter().take(room));
            if piece.ends_with(b"\n") {
                self.finish(show);
            }
        }
    }

    fn finish(&mut self, show: &impl Fn(&str)) {
        let line = std::mem::take(&mut self.0);
        if !line.is_empty() {
            show(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_half_and_the_last_are_kept() {
        for (length, left_out) in
            [(0, 0), (MAX_OUTPUT_BYTES, 0), (MAX_OUTPUT_BYTES + 1, 1), (1 << 20, 1_024_000)]
        {
            let input: Vec<u8> = (0..length).map(|at| b'a' + u8::try_from(at % 26).unwrap()).collect();
            let mut kept = TruncatedOutput::default();
            kept.read(&*input, |_| {}).await;
            assert_eq!(kept.left_out, left_out, "{length}");
            let text = kept.text();
            if left_out == 0 {
                assert_eq!(text.as_bytes(), input);
            } else {
                assert!(text.as_bytes().starts_with(&input[..TruncatedOutput::HALF]));
                assert!(text.as_bytes().ends_with(&input[length - TruncatedOutput::HALF..]));
                assert!(text.contains(&format!("[… {left_out} bytes left out …]")));
            }
        }
    }
}
