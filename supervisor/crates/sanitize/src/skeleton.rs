//! The skeleton: a text with look-alikes, case, invisible characters and escapes folded.
//!
//! It is never built for a whole text. A [`Window`] grows it from one place, as far as a shape looks,
//! and every unit has the range of the original bytes it stands for. Escapes are resolved as units are added:
//! the unit that completes one (`;` in `&lt;`, the last digit of `\u003c` or `%3c`) replaces all of it by the character
//! that it stands for. That character may complete the next escape, so nested ones (`&amp;amp;lt;`, `%253c`) are
//! decoded to the end, in one pass and in time linear in the bytes read.

use crate::entity;
use crate::fold::{Folded, fold};
use crate::invisible::{is_invisible, stays};
use crate::unit::{END, FAR, OTHER, Unit};

/// How many units a shape may look at. The longest token in use has 40; white space may triple that.
const MAX_UNITS: usize = 160;
/// How many bytes of the original a window may cover. Spelled-out characters take up to ten bytes each, so this
/// covers a token of [`MAX_UNITS`] units twice over.
const MAX_BYTES: usize = 4096;
/// The longest body of a reference: with more units behind `&` there is none.
pub(crate) const SETTLED_AFTER: usize = 12;

/// How many units must follow before it is certain that no escape starts there. `None` if none can start with `byte`.
fn settled_after(byte: u8) -> Option<usize> {
    match byte {
        b'&' => Some(SETTLED_AFTER),
        // `\U0000003c`, `\u{0000003c}`
        b'\\' => Some(11),
        // `%u003c`
        b'%' => Some(5),
        _ => None,
    }
}

/// The skeleton from one place on, grown on demand.
pub(crate) struct Window<'t, 'u> {
    pub(crate) text: &'t str,
    /// Where the window begins in the original.
    pub(crate) from: usize,
    next: usize,
    units: &'u mut Vec<Unit>,
    /// The last `&` that may still become an entity.
    ampersand: Option<usize>,
    /// Whether a byte was read that an escape begins with. Until then every unit is final.
    escapes: bool,
    far: bool,
}

impl<'t, 'u> Window<'t, 'u> {
    /// `units` is scratch space, so that a scan allocates once.
    pub(crate) fn new(text: &'t str, from: usize, units: &'u mut Vec<Unit>) -> Self {
        units.clear();
        Self { text, from, next: from, units, ampersand: None, escapes: false, far: false }
    }

    /// The folded character at `index`, or [`END`] or [`FAR`].
    #[inline]
    pub(crate) fn get(&mut self, index: usize) -> u8 {
        match self.units.get(index) {
            Some(unit) if !self.escapes && index < MAX_UNITS => unit.byte,
            _ => self.load(index),
        }
    }

    fn load(&mut self, index: usize) -> u8 {
        if index >= MAX_UNITS {
            return FAR;
        }
        while self.units.len() <= index {
            if !self.grow() && self.units.len() <= index {
                return if self.far { FAR } else { END };
            }
        }
        while let Some(needed) = self.units.get(index).and_then(|unit| settled_after(unit.byte)) {
            if self.units.len() > index + needed || !self.grow() {
                break;
            }
        }
        if self.units.len() <= index {
            // The unit here was an escape for something invisible.
            return self.get(index);
        }
        self.units[index].byte
    }

    /// Where the original bytes of unit `index` end. The unit must have been read.
    pub(crate) fn end_of(&self, index: usize) -> usize {
        self.units[index].end
    }

    /// Where the original bytes of unit `index` start. The unit must have been read.
    pub(crate) fn start_of(&self, index: usize) -> usize {
        self.units[index].start
    }

    /// Whether the window's first unit is at its beginning, and not behind characters that were folded away.
    pub(crate) fn starts_here(&mut self) -> bool {
        while self.grow() {
            let Some(first) = self.units.first() else { return false };
            if settled_after(first.byte).is_none_or(|needed| self.units.len() > needed) {
                break;
            }
        }
        self.units.first().is_some_and(|first| first.start == self.from)
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
        if !self.escapes && self.grow_unescaped() {
            return true;
        }
        // Most text folds to itself.
        if let Some(&byte @ b' '..=b'~') = self.text.as_bytes().get(start) {
            self.next += 1;
            self.push(byte.to_ascii_lowercase(), start, self.next);
            return true;
        }
        let Some(c) = self.text[start..].chars().next() else {
            return self.end_reference(END);
        };
        self.next += c.len_utf8();
        if is_invisible(c) && stays(self.text, start, c) {
            return true;
        }
        let lone_return = c == '\r' && !self.text[self.next..].starts_with('\n');
        if is_invisible(c) || (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x0c')) || lone_return {
            self.push(OTHER, start, self.next);
        } else {
            self.push_folded(c, start, self.next);
        }
        true
    }

    /// Reads several characters at once if none of them can be part of an escape; false if there are none.
    fn grow_unescaped(&mut self) -> bool {
        /// Longer than most names with their delimiter.
        const STRIDE: usize = 16;
        let start = self.next;
        let end = (start + STRIDE).min(self.from + MAX_BYTES + 1).min(self.text.len());
        let near = self.text.as_bytes().get(start..end).unwrap_or_default();
        let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'&' | b'%' | b'\\');
        let count = near.iter().position(|byte| !plain(byte)).unwrap_or(near.len());
        let units = near[..count].iter().zip(start..);
        self.units.extend(units.map(|(byte, at)| Unit {
            byte: byte.to_ascii_lowercase(),
            start: at,
            end: at + 1,
        }));
        self.next += count;
        count > 0
    }

    fn push_folded(&mut self, c: char, start: usize, end: usize) {
        match fold(c) {
            Folded::Nothing => {}
            Folded::One(byte) => self.push(byte, start, end),
            Folded::Several(bytes) => {
                for byte in bytes.into_iter().filter(|&byte| byte != 0) {
                    self.push(byte, start, end);
                }
            }
            Folded::Other => self.push(OTHER, start, end),
        }
    }

    fn push(&mut self, byte: u8, start: usize, end: usize) {
        self.escapes |= matches!(byte, b'&' | b'%' | b'\\');
        if self.escapes {
            self.push_behind_escapes(byte, start, end)
        } else {
            self.units.push(Unit { byte, start, end })
        }
    }

    fn push_behind_escapes(&mut self, byte: u8, start: usize, end: usize) {
        if byte == b'\\'
            && let Some(last) = self.units.last_mut().filter(|last| last.byte == b'\\')
        {
            // Any number of them quotes what follows.
            last.end = end;
            return;
        }
        self.end_reference(byte);
        self.units.push(Unit { byte, start, end });
        let last = self.units.len() - 1;
        let replaced = match byte {
            b';' => self.close_reference(last),
            b'}' => self.close_braced(last),
            _ => byte.is_ascii_hexdigit() && self.close_hex(last),
        };
        if replaced {
            return;
        }
        if last > 0 && self.units[last - 1].byte == b'\\' && self.close_backslash(last) {
            return;
        }
        if byte == b'&' {
            self.ampersand = Some(last);
        }
    }

    /// HTML takes `&lt` and `&#60` without their semicolon when what follows cannot be part of them.
    fn end_reference(&mut self, following: u8) -> bool {
        let Some(start) = self.ampersand else { return false };
        let body = &self.units[start + 1..];
        // A semicolon completes it, and the others may begin an escape for one.
        if matches!(following, b';' | b'%' | b'\\') || body.is_empty() {
            return false;
        }
        if body.len() > SETTLED_AFTER {
            self.ampersand = None;
            return false;
        }
        if !entity::may_lack_semicolon(body[0].byte) {
            return false;
        }
        let escape = body.iter().position(|unit| matches!(unit.byte, b'%' | b'\\'));
        if escape.is_some()
            && (following.is_ascii_hexdigit() || matches!(following, b'u' | b'x' | b'{' | b'}'))
        {
            return false;
        }
        let (body, behind) = body.split_at(escape.unwrap_or(body.len()));
        let Some(c) = entity::without_semicolon(body, behind.first().map_or(following, |unit| unit.byte))
        else {
            return false;
        };
        let behind = behind.to_vec();
        self.units.truncate(self.units.len() - behind.len());
        self.replace_from(start, c);
        for unit in behind {
            self.push(unit.byte, unit.start, unit.end);
        }
        true
    }

    fn close_reference(&mut self, last: usize) -> bool {
        let Some(start) = self.ampersand.take() else { return false };
        if last - start <= SETTLED_AFTER
            && let Some(c) = entity::with_semicolon(&self.units[start + 1..last])
        {
            self.replace_from(start, c);
            return true;
        }
        false
    }

    /// `%3c`, `%u003c`, `\x3c`, `\u003c`, `\U0000003c`, complete with the digit just pushed.
    fn close_hex(&mut self, last: usize) -> bool {
        for (lead, letter, digits) in [
            (b'%', None, 2),
            (b'%', Some(b'u'), 4),
            (b'\\', Some(b'x'), 2),
            (b'\\', Some(b'u'), 4),
            (b'\\', Some(b'u'), 8),
        ] {
            let length = digits + 1 + usize::from(letter.is_some());
            let Some(start) = (last + 1).checked_sub(length) else { continue };
            if self.units[start].byte != lead
                || letter.is_some_and(|letter| self.units[start + 1].byte != letter)
            {
                continue;
            }
            if let Some(c) = entity::hex(&self.units[last + 1 - digits..=last]) {
                self.replace_from(start, c);
                return true;
            }
        }
        false
    }

    /// `\u{3c}`, complete with the brace just pushed.
    fn close_braced(&mut self, last: usize) -> bool {
        let nearest = last.saturating_sub(SETTLED_AFTER);
        for start in (nearest..last.saturating_sub(3)).rev() {
            if self.units[start].byte == b'\\'
                && self.units[start + 1].byte == b'u'
                && self.units[start + 2].byte == b'{'
            {
                let Some(c) = entity::hex(&self.units[start + 3..last]) else { return false };
                self.replace_from(start, c);
                return true;
            }
        }
        false
    }

    /// A backslash in front of punctuation quotes it; in front of `n`, `r` and `t` it stands for white space.
    fn close_backslash(&mut self, last: usize) -> bool {
        let unit = self.units[last];
        let byte = match unit.byte {
            b'n' | b'r' => b'\n',
            b't' => b' ',
            b'\\' => return false,
            other if other.is_ascii_punctuation() && other != b'{' => other,
            _ => return false,
        };
        let from = self.units[last - 1].start;
        self.units.truncate(last - 1);
        self.push(byte, from, unit.end);
        true
    }

    /// Replaces the units from `start` on by the character they stand for.
    fn replace_from(&mut self, start: usize, c: char) {
        let (from, end) = (self.units[start].start, self.units[self.units.len() - 1].end);
        self.units.truncate(start);
        // The new character may complete a reference that begins further back.
        let nearest = start.saturating_sub(SETTLED_AFTER);
        let waiting = self.units[nearest..].iter().rposition(|unit| unit.byte == b'&');
        self.ampersand = waiting.map(|found| nearest + found);
        if c == '\n' || c == '\r' {
            self.push(b'\n', from, end);
        } else if matches!(c, '\u{1b}' | '\u{9b}') {
            self.skip_sequence(c);
        } else if c == '\t' || !is_invisible(c) && !c.is_control() {
            self.push_folded(c, from, end);
        }
    }

    /// Skips the rest of a terminal's control sequence whose first character was escaped: a terminal, or a program that
    /// strips such codes, leaves nothing of it.
    fn skip_sequence(&mut self, escape: char) {
        /// Parameters are a few numbers.
        const MAX_SEQUENCE: usize = 24;
        let rest = &self.text.as_bytes()[self.next..];
        let begin = usize::from(escape == '\u{1b}');
        if begin == 1 && rest.first() != Some(&b'[') {
            return;
        }
        let end = rest.iter().skip(begin).take(MAX_SEQUENCE).position(|byte| (b'@'..=b'~').contains(byte));
        if let Some(end) = end {
            self.next += begin + end + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut scratch = Vec::new();
        let mut window = Window::new(text, 0, &mut scratch);
        let mut out = String::new();
        for index in 0.. {
            match window.get(index) {
                END | FAR => return out,
                OTHER => out.push('?'),
                byte => out.push(char::from(byte)),
            }
        }
        out
    }

    #[test]
    fn every_spelling_of_a_bracket_folds_to_it() {
        for spelling in [
            "<a",
            "＜a",
            "‹a",
            "&lt;a",
            "&LT;a",
            "&#60;a",
            "&#060;a",
            "&#x3C;a",
            "&amp;lt;a",
            "&amp;amp;#60;a",
            "&#38;lt;a",
            "%3ca",
            "%253Ca",
            "%26lt%3Ba",
            "\\u003ca",
            "\\\\u003Ca",
            "\\x3ca",
            "\\u{3c}a",
            "\\uff1ca",
            "\\<a",
            "&lt;Ａ",
            "&ltа",
            "&#60а",
            "\\u0026lt;a",
            "&lt%3Ba",
            "&&#108;t;a",
        ] {
            let out = folded(spelling);
            assert_eq!(out, "<a", "{spelling}");
        }
    }

    #[test]
    fn offsets_point_into_the_original() {
        let mut scratch = Vec::new();
        let mut window = Window::new("&amp;lt;ｔool", 0, &mut scratch);
        assert_eq!(window.get(0), b'<');
        assert_eq!(window.end_of(0), 8);
        assert_eq!(window.get(1), b't');
        assert_eq!((window.start_of(1), window.end_of(1)), (8, 11));
    }

    #[test]
    fn what_spells_nothing_stays_itself() {
        assert_eq!(folded("100% &c; a&b \\d"), "100% &c; a&b \\d");
        assert_eq!(folded("a\u{200b}b\u{1b}[0m"), "a?b?[0m");
        assert_eq!(folded("a\\nb\r\nc\rd"), "a\nb \nc?d");
    }
}
