//! Letters and digits alone, in lower case: what of a text is compared.
//!
//! They are written one behind the other into a buffer of fixed size, from which fingerprints are taken before it is filled
//! again, so a text of any length costs no memory. ASCII goes in words of eight bytes, without a branch for each byte:
//! whether one counts is as good as random.

use super::grams::GRAM;

/// How much is kept at a time: enough for most answers and for loops worth the name, little enough for the stack.
const ROOM: usize = 1024;

/// With less room than this it is not filled up any further: what is left would be filled in ever smaller steps.
const FULL: usize = 128;

/// So many bytes are written without asking after each whether there is room.
const CHUNK: usize = 8;

/// What is written behind [`ROOM`]: a chunk, or a character in lower case, which is up to three characters.
const SLACK: usize = 16;

/// What becomes of a byte of ASCII: its lower case, and in the upper half 1 if it counts at all.
const KEPT: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_alphanumeric() {
            table[byte] = 0x100 | (byte as u8).to_ascii_lowercase() as u16;
        }
        byte += 1;
    }
    table
};

/// The part of a text that is being looked at.
pub(super) struct Kept {
    bytes: [u8; ROOM + SLACK],
    end: usize,
}

impl Kept {
    pub(super) fn new() -> Self {
        Self { bytes: [0; ROOM + SLACK], end: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    /// Takes in as much of a text as there is room for, and gives the rest of it.
    pub(super) fn fill<'t>(&mut self, text: &'t str) -> &'t str {
        let mut rest = text;
        while !rest.is_empty() && self.end + FULL <= ROOM {
            // None of it gets longer.
            let head = &rest.as_bytes()[..rest.len().min(ROOM - self.end)];
            let ascii =
                if head.is_ascii() { head.len() } else { head.iter().take_while(|b| b.is_ascii()).count() };
            let taken = if ascii > 0 { self.push(&head[..ascii]) } else { self.push_first(rest) };
            rest = &rest[taken..];
        }
        rest
    }

    /// Drops what no piece begins in any more, where a piece begins at every `stride`th place.
    pub(super) fn forget_before(&mut self, stride: usize) {
        let pieces = self.end.saturating_sub(GRAM - 1).div_ceil(stride);
        // A stride is shorter than a piece, so the next one begins in what is there.
        let next = pieces * stride;
        self.bytes.copy_within(next..self.end, 0);
        self.end -= next;
    }

    /// Some ASCII, for which there is room. All of it is written, and only what counts moves the end on.
    fn push(&mut self, ascii: &[u8]) -> usize {
        let out = &mut self.bytes[self.end..];
        let mut end = 0;
        let (chunks, rest) = ascii.as_chunks::<CHUNK>();
        for chunk in chunks {
            let place =
                out[end..].first_chunk_mut::<CHUNK>().expect("there is room for the rest and a chunk");
            let mut kept = 0;
            for byte in chunk {
                let entry = KEPT[usize::from(*byte)];
                place[kept % CHUNK] = entry as u8;
                kept += usize::from(entry >> 8);
            }
            end += kept;
        }
        for byte in rest {
            let entry = KEPT[usize::from(*byte)];
            out[end] = entry as u8;
            end += usize::from(entry >> 8);
        }
        self.end += end;
        ascii.len()
    }

    /// The first character of a text, of which it gives the length.
    #[cold]
    fn push_first(&mut self, text: &str) -> usize {
        let Some(c) = text.chars().next() else { return 0 };
        if c.is_alphanumeric() {
            for lower in c.to_lowercase() {
                self.end += lower.encode_utf8(&mut self.bytes[self.end..]).len();
            }
        }
        c.len_utf8()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(text: &str) -> Vec<u8> {
        let mut kept = Kept::new();
        assert_eq!(kept.fill(text), "");
        kept.bytes().to_vec()
    }

    #[test]
    fn case_space_and_punctuation_do_not_count() {
        assert_eq!(kept("He said: \"Go-on\",\n\tÄrger №1"), "hesaidgoonärger1".as_bytes());
        assert_eq!(kept("He said: \"Go-on\",\n\tA1"), b"hesaidgoona1");
    }

    #[test]
    fn words_and_characters_are_kept_alike() {
        let ascii: String = (0..128u8).map(char::from).collect();
        for from in 0..ascii.len() {
            let slowly = ascii[from..].chars().filter(char::is_ascii_alphanumeric);
            assert_eq!(kept(&ascii[from..]), slowly.collect::<String>().to_ascii_lowercase().as_bytes());
        }
    }

    #[test]
    fn every_choice_of_eight_is_pushed_together() {
        for chosen in 0..256_u32 {
            let text: String = (0..8)
                .map(|place| if chosen >> place & 1 == 1 { char::from(b'1' + place) } else { '-' })
                .collect();
            assert_eq!(kept(&text), text.replace('-', "").as_bytes(), "{text}");
        }
    }

    #[test]
    fn no_character_in_lower_case_is_longer_than_the_slack() {
        for c in '\0'..=char::MAX {
            let lower: usize = c.to_lowercase().map(char::len_utf8).sum();
            assert!(lower < SLACK, "{c:?}");
        }
    }

    #[test]
    fn a_long_text_takes_several_fillings() {
        let mut buffer = Kept::new();
        let text = "ab ".repeat(1000);
        let rest = buffer.fill(&text);
        assert!(!rest.is_empty() && (ROOM - FULL..=ROOM).contains(&buffer.bytes().len()));
        let kept = buffer.bytes().to_vec();
        buffer.forget_before(1);
        assert_eq!(buffer.bytes(), &kept[kept.len() - (GRAM - 1)..]);
    }
}
