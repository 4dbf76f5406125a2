//! The skeleton: a text with look-alikes, case, invisible characters and escapes folded.
//!
//! It is never built for a whole text. A [`Window`] grows it from one place, as far as a shape looks, and
//! every unit has the range of the original bytes it stands for. Escapes are resolved as units are added: the
//! unit that completes one (`;` in `&lt;`, the last digit of `\u003c` or `%3c`) replaces all of it by the
//! character that it stands for. That character may complete the next escape, so nested ones (`&amp;amp;lt;`,
//! `%253c`) are decoded to the end, in one pass and in time linear in the bytes read.

use crate::invisible::{is_invisible, stays};
use crate::unit::{END, FAR, OTHER, Unit};

mod decoder;

use decoder::{Decoder, MAX_SEQUENCE, settled_after};

/// How many units a shape may look at. The longest token in use has 40; white space may triple that.
const MAX_UNITS: usize = 160;
/// How many bytes of the original a window may cover. Spelled-out characters take up to ten bytes each, so
/// this covers a token of [`MAX_UNITS`] units twice over.
const MAX_BYTES: usize = 4096;

/// The longest comment (`<!-- … -->`) inside a delimiter that is passed over, in bytes. A longer one is no
/// disguise that joins its sides, but a page.
pub(crate) const MAX_COMMENT: usize = 256;

/// The skeleton from one place on, grown on demand.
pub(crate) struct Window<'t, 'u> {
    pub(crate) text: &'t str,
    /// Where the window begins in the original.
    pub(crate) from: usize,
    next: usize,
    decoder: Decoder<'u>,
    far: bool,
}

impl<'t, 'u> Window<'t, 'u> {
    /// `units` is scratch space, so that a scan allocates once.
    pub(crate) fn new(text: &'t str, from: usize, units: &'u mut Vec<Unit>) -> Self {
        Self { text, from, next: from, decoder: Decoder::new(units), far: false }
    }

    /// The folded character at `index`, or [`END`] or [`FAR`].
    #[inline]
    pub(crate) fn get(&mut self, index: usize) -> u8 {
        match self.decoder.units.get(index) {
            Some(unit) if !self.decoder.has_escapes && index < MAX_UNITS => unit.byte,
            _ => self.load(index),
        }
    }

    fn load(&mut self, index: usize) -> u8 {
        if index >= MAX_UNITS {
            return FAR;
        }
        while self.decoder.units.len() <= index {
            if !self.grow() && self.decoder.units.len() <= index {
                return if self.far { FAR } else { END };
            }
        }
        while self.is_unsettled(index) && self.grow() {}
        if self.decoder.units.len() <= index {
            // The unit here was an escape for something invisible.
            return self.get(index);
        }
        self.decoder.units[index].byte
    }

    /// Whether characters that are not read yet may turn the unit at `index` into another one. The digits of an
    /// escape may be escapes too, as in `%\u0033c`: those have to be complete as well.
    fn is_unsettled(&self, index: usize) -> bool {
        /// How far such a chain is followed, in units: four of the longest escapes.
        const MAX_CHAIN: usize = 48;
        if self.decoder.is_in_sequence(index) {
            return true;
        }
        let units = &self.decoder.units[..];
        let (mut last, mut at) = (index, index);
        while at <= last {
            let Some(unit) = units.get(at) else { return at > index };
            last = last.max(at + settled_after(unit.byte).unwrap_or(0)).min(index + MAX_CHAIN);
            at += 1;
        }
        false
    }

    /// Where the original bytes of unit `index` end. The unit must have been read.
    pub(crate) fn end_of(&self, index: usize) -> usize {
        self.decoder.units[index].end
    }

    /// Where the original bytes of unit `index` start. The unit must have been read.
    pub(crate) fn start_of(&self, index: usize) -> usize {
        self.decoder.units[index].start
    }

    /// Whether the window's first unit is at its beginning, and not behind characters that were folded away.
    pub(crate) fn starts_here(&mut self) -> bool {
        while self.grow() {
            if self.decoder.units.is_empty() {
                return false;
            }
            if !self.is_unsettled(0) {
                break;
            }
        }
        self.decoder.units.first().is_some_and(|first| first.start == self.from)
    }

    /// The index of the first unit from `index` on that is not white space.
    pub(crate) fn skip_space(&mut self, mut index: usize) -> usize {
        while matches!(self.get(index), b' ' | b'\n') {
            index += 1;
        }
        index
    }

    /// Reads the next character of the original; false if there is none within the bounds.
    fn grow(&mut self) -> bool {
        let start = self.next;
        if start - self.from > MAX_BYTES && start < self.text.len() {
            self.far = true;
            return false;
        }
        if !self.decoder.has_escapes && self.grow_unescaped() {
            return true;
        }
        if let Some(end) = self.end_of_comment(start) {
            self.next = end;
            return true;
        }
        // Most text folds to itself.
        if let Some(&byte @ b' '..=b'~') = self.text.as_bytes().get(start) {
            self.next += 1;
            self.decoder.push(byte.to_ascii_lowercase(), start, self.next);
            self.skip_escaped_sequence();
            return true;
        }
        let Some(c) = self.text[start..].chars().next() else {
            return self.decoder.end_reference(END);
        };
        self.next += c.len_utf8();
        if is_invisible(c) && stays(self.text, start, c) {
            return true;
        }
        let lone_return = c == '\r' && !self.text[self.next..].starts_with('\n');
        if is_invisible(c) || (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x0c')) || lone_return {
            self.decoder.push(OTHER, start, self.next);
        } else {
            self.decoder.push_folded(c, start, self.next);
        }
        self.skip_escaped_sequence();
        true
    }

    /// The end of the comment that begins at `start`, inside a delimiter: a reader that removes it joins its
    /// sides.
    fn end_of_comment(&self, start: usize) -> Option<usize> {
        let rest = self.text.as_bytes().get(start..)?;
        if self.decoder.units.is_empty() || !rest.starts_with(b"<!--") {
            return None;
        }
        let near = &rest[..rest.len().min(MAX_COMMENT)];
        let body = near.get(4..)?;
        memchr::memmem::find(body, b"-->").map(|found| start + 4 + found + 3)
    }

    /// Reads several characters at once if none of them can be part of an escape or a comment; false if there are none.
    fn grow_unescaped(&mut self) -> bool {
        /// Longer than most names with their delimiter.
        const STRIDE: usize = 16;
        let start = self.next;
        let end = (start + STRIDE).min(self.from + MAX_BYTES + 1).min(self.text.len());
        let near = self.text.as_bytes().get(start..end).unwrap_or_default();
        let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'&' | b'%' | b'\\' | b'<');
        let count = near.iter().position(|byte| !plain(byte)).unwrap_or(near.len());
        let units = near[..count].iter().zip(start..);
        self.decoder.units.extend(units.map(|(byte, at)| Unit {
            byte: byte.to_ascii_lowercase(),
            start: at,
            end: at + 1,
        }));
        self.next += count;
        count > 0
    }

    /// Skips the rest of a terminal's control sequence whose first character was escaped: a terminal, or a
    /// program that strips such codes, leaves nothing of it.
    #[inline]
    fn skip_escaped_sequence(&mut self) {
        let Some(introducer) = self.decoder.take_introducer() else { return };
        let rest = &self.text.as_bytes()[self.next..];
        let begin = usize::from(introducer == '\u{1b}');
        if begin == 1 && rest.first() != Some(&b'[') {
            return self.decoder.begin_sequence(introducer);
        }
        let end = rest.iter().skip(begin).take(MAX_SEQUENCE).position(|byte| (b'@'..=b'~').contains(byte));
        match end.map(|end| begin + end) {
            // The end of an escape of a parameter: `ESC [ &#51;1m`.
            Some(end) if rest[..end].iter().any(|byte| matches!(byte, b'&' | b'%')) || rest[end] == b'\\' => {
                self.decoder.begin_sequence(introducer);
            }
            Some(end) => self.next += end + 1,
            None => self.decoder.begin_sequence(introducer),
        }
    }
}

#[cfg(test)]
mod tests;
