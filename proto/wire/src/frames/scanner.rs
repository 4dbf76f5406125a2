//! Finds the heads of HTTP/2 frames in a stream of bytes.

/// A frame's head: 24 bits of length, kind, flags, and the stream.
const HEAD_BYTES: usize = 9;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;

/// What the head of a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) kind: u8,
    /// The length of the payload in bytes.
    pub(super) length: usize,
}

/// The position in one direction of a connection.
#[derive(Debug)]
pub(super) struct FrameScanner {
    head: [u8; HEAD_BYTES],
    /// How much of the head is known.
    known: usize,
    /// How many bytes come before the next head.
    skip: usize,
}

impl FrameScanner {
    /// A scanner of bytes that begin with a preface of this length.
    pub(super) fn after(preface_bytes: usize) -> Self {
        Self { head: [0; HEAD_BYTES], known: 0, skip: preface_bytes }
    }

    /// Reports the heads that are complete with these bytes.
    pub(super) fn scan(&mut self, mut bytes: &[u8], mut found: impl FnMut(FrameHead)) {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let taken = (HEAD_BYTES - self.known).min(bytes.len());
            self.head[self.known..self.known + taken].copy_from_slice(&bytes[..taken]);
            self.known += taken;
            bytes = &bytes[taken..];
            if self.known == HEAD_BYTES {
                let [a, b, c, kind, ..] = self.head;
                let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                self.known = 0;
                self.skip = length;
                found(FrameHead { kind, length });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heads(bytes: &[u8], step: usize, preface: usize) -> Vec<FrameHead> {
        let mut scanner = FrameScanner::after(preface);
        let mut found = Vec::new();
        bytes.chunks(step).for_each(|piece| scanner.scan(piece, |head| found.push(head)));
        found
    }

    proptest! {
        #[test]
        fn frames_are_found_in_whatever_pieces_they_come(
            frames in prop::collection::vec((any::<u8>(), 0..600_usize), 0..20),
            step in 1..700_usize,
            preface in 0..30_usize,
        ) {
            let mut bytes = vec![0xff; preface];
            for (kind, length) in &frames {
                bytes.extend([0, (length >> 8) as u8, (length & 0xff) as u8, *kind, 0, 0, 0, 0, 1]);
                bytes.extend(vec![0xff; *length]);
            }
            let expected: Vec<FrameHead> =
                frames.iter().map(|&(kind, length)| FrameHead { kind, length }).collect();
            prop_assert_eq!(heads(&bytes, step, preface), expected);
        }
    }
}
