//! Collects units, and replaces escapes by the characters they stand for as soon as they are complete.

use crate::entity::{self, MAX_REFERENCE};
use crate::fold::{Folded, fold};
use crate::invisible::is_invisible;
use crate::unit::{OTHER, Unit};

/// How many units must follow before it is certain that no escape starts there. `None` if none can start with
/// `byte`.
pub(super) fn settled_after(byte: u8) -> Option<usize> {
    match byte {
        b'&' => Some(MAX_REFERENCE),
        // `\U0000003c`, `\u{0000003c}`
        b'\\' => Some(11),
        // `%u003c`
        b'%' => Some(5),
        _ => None,
    }
}

/// The units of a window so far.
pub(super) struct Decoder<'u> {
    pub(super) units: &'u mut Vec<Unit>,
    /// The last `&` that may still become an entity.
    ampersand: Option<usize>,
    /// Whether a byte was added that an escape begins with. Until then every unit is final.
    pub(super) has_escapes: bool,
    /// The first character of a terminal's control sequence that was escaped: the rest of the sequence is to
    /// be skipped.
    introducer: Option<char>,
    /// The last backslash that was escaped, which does not belong to a run in front of the next escape.
    escaped_backslash: Option<usize>,
    /// Where the rest of such a sequence begins, if it is escaped too, and whether a bracket belongs to it.
    sequence: Option<(usize, bool)>,
}

/// The longest rest of a control sequence: parameters are a few numbers.
pub(super) const MAX_SEQUENCE: usize = 24;

impl<'u> Decoder<'u> {
    pub(super) fn new(units: &'u mut Vec<Unit>) -> Self {
        units.clear();
        Self {
            units,
            ampersand: None,
            has_escapes: false,
            introducer: None,
            escaped_backslash: None,
            sequence: None,
        }
    }

    /// The first character of an escaped control sequence, once.
    pub(super) fn take_introducer(&mut self) -> Option<char> {
        self.introducer.take()
    }

    /// Expects the rest of a control sequence in the next units, escaped too.
    pub(super) fn begin_sequence(&mut self, introducer: char) {
        self.sequence = Some((self.units.len(), introducer == '\u{1b}'));
    }

    /// Whether the unit at `index` may belong to a control sequence that is not complete.
    pub(super) fn is_in_sequence(&self, index: usize) -> bool {
        self.sequence.is_some_and(|(start, _)| start <= index)
    }

    /// Removes the control sequence that the last unit completes.
    fn end_sequence(&mut self) {
        let Some((start, bracket)) = self.sequence else { return };
        let Some(units) = self.units.get(start..) else {
            self.sequence = None;
            return;
        };
        let is_lead = |unit: &Unit| matches!(unit.byte, b'&' | b'\\' | b'%');
        if units.iter().any(is_lead) && units.len() <= MAX_SEQUENCE {
            return;
        }
        let parameters = units.get(usize::from(bracket)..).unwrap_or_default();
        let valid = !bracket || units.first().is_none_or(|unit| unit.byte == b'[');
        match parameters.split_last() {
            _ if !valid || units.len() > MAX_SEQUENCE => self.sequence = None,
            Some((last, _)) if (b'@'..=b'~').contains(&last.byte) => {
                self.units.truncate(start);
                self.sequence = None;
            }
            Some((last, _)) if !(b' '..=b'?').contains(&last.byte) && last.byte != b'\n' => {
                self.sequence = None;
            }
            _ => {}
        }
    }

    /// Adds what the character folds to.
    pub(super) fn push_folded(&mut self, c: char, start: usize, end: usize) {
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

    /// Adds one folded character, and replaces the escape that it completes.
    #[inline]
    pub(super) fn push(&mut self, byte: u8, start: usize, end: usize) {
        self.has_escapes |= matches!(byte, b'&' | b'%' | b'\\');
        if self.has_escapes {
            self.push_behind_escapes(byte, start, end);
            self.end_sequence();
        } else {
            self.units.push(Unit { byte, start, end })
        }
    }

    fn push_behind_escapes(&mut self, byte: u8, start: usize, end: usize) {
        if byte == b'\\'
            && self.escaped_backslash.is_none_or(|index| index + 1 != self.units.len())
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
    ///
    /// Ends the last reference in front of this character, if it can end there, and returns whether it did.
    pub(super) fn end_reference(&mut self, following: u8) -> bool {
        let Some(start) = self.ampersand else { return false };
        let body = &self.units[start + 1..];
        // A semicolon completes it, and the others may begin an escape for one, or for another digit.
        if matches!(following, b';' | b'%' | b'\\' | b'&') || body.is_empty() {
            return false;
        }
        if body.len() > MAX_REFERENCE {
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
        if last - start <= MAX_REFERENCE
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
            // The second half of a surrogate pair.
            let Some(high) = start.checked_sub(length).filter(|_| lead == b'\\' && digits == 4) else {
                continue;
            };
            if self.units[high].byte == lead
                && self.units[high + 1].byte == b'u'
                && let Some(c) = entity::hex_pair(&self.units[high + 2..start], &self.units[start + 2..=last])
            {
                self.replace_from(high, c);
                return true;
            }
        }
        false
    }

    /// `\u{3c}`, complete with the brace just pushed.
    fn close_braced(&mut self, last: usize) -> bool {
        let nearest = last.saturating_sub(MAX_REFERENCE);
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
            // What it quotes is known once the escape behind it is complete: `\&#x75;003c`.
            b'\\' | b'&' | b'%' => return false,
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
        let nearest = start.saturating_sub(MAX_REFERENCE);
        let waiting = self.units[nearest..].iter().rposition(|unit| unit.byte == b'&');
        self.ampersand = waiting.map(|found| nearest + found);
        if c == '\n' || c == '\r' {
            self.push(b'\n', from, end);
        } else if matches!(c, '\u{1b}' | '\u{9b}') {
            self.introducer = Some(c);
        } else if c == '\t' || !is_invisible(c) && !c.is_control() {
            self.push_folded(c, from, end);
            if c == '\\' {
                self.escaped_backslash = self.units.len().checked_sub(1);
            }
        }
    }
}
