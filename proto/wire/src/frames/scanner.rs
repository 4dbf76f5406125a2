//! Finds the heads of HTTP/2 frames in a stream of bytes.

/// A frame's head: 24 bits of length, kind, flags, and the stream.
const HEAD_BYTES: usize = 9;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;

/// Flags of DATA (RFC 9113, section 6.1).
const END_STREAM: u8 = 0x1;
const PADDED: u8 = 0x8;

/// What the head of a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) kind: u8,
    /// The length of the payload in bytes; of DATA without its padding.
    pub(super) length: usize,
    /// Whether it is DATA and more of its stream follows.
    pub(super) continues: bool,
}

/// The position in one direction of a connection.
#[derive(Debug)]
pub(super) struct FrameScanner {
    /// The head, and the length of the padding where there is one.
    head: [u8; HEAD_BYTES + 1],
    /// How much of the head is known.
    known: usize,
    /// How many bytes come before the next head.
    skip: usize,
}

impl FrameScanner {
    /// A scanner of bytes that begin with a preface of this length.
    pub(super) fn after(preface_bytes: usize) -> Self {
        Self { head: [0; HEAD_BYTES + 1], known: 0, skip: preface_bytes }
    }

    /// Reports the heads that are complete with these bytes.
    pub(super) fn scan(&mut self, mut bytes: &[u8], mut found: impl FnMut(FrameHead)) {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let taken = (self.wanted() - self.known).min(bytes.len());
            self.head[self.known..self.known + taken].copy_from_slice(&bytes[..taken]);
            self.known += taken;
            bytes = &bytes[taken..];
            if self.known >= HEAD_BYTES && self.known == self.wanted() {
                let [a, b, c, kind, flags, .., padding] = self.head;
                let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                let read = self.known - HEAD_BYTES;
                self.known = 0;
                self.skip = length - read;
                let padded = if read == 0 { 0 } else { read + usize::from(padding) };
                let continues = kind == DATA && flags & END_STREAM == 0;
                found(FrameHead { kind, length: length.saturating_sub(padded), continues });
            }
        }
    }

    /// How many bytes say what the frame is: the first byte of padded DATA is the length of its padding.
    fn wanted(&self) -> usize {
        let [a, b, c, kind, flags, ..] = self.head;
        let padded = kind == DATA && flags & PADDED != 0 && [a, b, c] != [0; 3];
        HEAD_BYTES + usize::from(self.known >= HEAD_BYTES && padded)
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
            frames in prop::collection::vec((0..3_u8, any::<u8>(), 0..600_usize, any::<u8>()), 0..20),
            step in 1..700_usize,
            preface in 0..30_usize,
        ) {
            let mut bytes = vec![0xff; preface];
            let mut expected = Vec::new();
            for (kind, flags, length, padding) in frames {
                bytes.extend([0, (length >> 8) as u8, (length & 0xff) as u8, kind, flags, 0, 0, 0, 1]);
                bytes.extend(vec![padding; length]);
                let padded = kind == DATA && flags & PADDED != 0 && length > 0;
                let unused = if padded { 1 + usize::from(padding) } else { 0 };
                let continues = kind == DATA && flags & END_STREAM == 0;
                expected.push(FrameHead { kind, length: length.saturating_sub(unused), continues });
            }
            prop_assert_eq!(heads(&bytes, step, preface), expected);
        }
    }
}
