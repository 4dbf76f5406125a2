//! One pattern over one subject.

use std::ops::Range;

use super::class::{ESCAPE, is_in_class, is_in_set};
use super::{Meter, PatternError};

/// The most captures of a pattern: Luau's limit, which scripts see.
const MAX_CAPTURES: usize = 32;
/// How deep a match may call itself: Luau's limit, which scripts see. It bounds the stack as well.
const MAX_DEPTH: u32 = 200;
/// How many bytes of a comparison or a search for one byte are one step of the meter: they look at many at once.
const BYTES_PER_STEP: usize = 16;

/// Where a match ends; nothing if there is none.
type Matched = Result<Option<usize>, PatternError>;

#[derive(Clone, Copy)]
struct Capture {
    begin: usize,
    extent: Extent,
}

#[derive(Clone, Copy)]
enum Extent {
    /// Its `)` has not come.
    Open,
    /// Of `()`: the place alone.
    Position,
    /// So many bytes.
    Bytes(usize),
}

/// What a capture holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Captured<'t> {
    Text(&'t [u8]),
    /// A place in the subject, from 1.
    Position(usize),
}

/// A pattern, without the `^` that anchors it, over a subject; with the captures of the last match.
pub(crate) struct Matcher<'t, 'm> {
    subject: &'t [u8],
    pattern: &'t [u8],
    /// What each match begins with, if that is one certain byte.
    first: Option<u8>,
    depth: u32,
    level: usize,
    captures: [Capture; MAX_CAPTURES],
    meter: Meter<'m>,
}

impl<'t, 'm> Matcher<'t, 'm> {
    pub(crate) fn new(subject: &'t [u8], pattern: &'t [u8], meter: Meter<'m>) -> Self {
        Self {
            subject,
            pattern,
            first: first_byte(pattern),
            depth: MAX_DEPTH,
            level: 0,
            captures: [Capture { begin: 0, extent: Extent::Open }; MAX_CAPTURES],
            meter,
        }
    }

    /// Where a match that begins here ends.
    ///
    /// # Errors
    /// [`PatternError`], as of all matches.
    pub(crate) fn match_at(&mut self, at: usize) -> Matched {
        self.level = 0;
        self.depth = MAX_DEPTH;
        self.match_from(at, 0)
    }

    /// The first match that begins here or later.
    ///
    /// # Errors
    /// [`PatternError`], as of all matches.
    pub(crate) fn search(&mut self, from: usize) -> Result<Option<Range<usize>>, PatternError> {
        let mut at = from;
        while at <= self.subject.len() {
            if let Some(byte) = self.first {
                // A match elsewhere fails at its first item: before anything in the pattern could be an error.
                let Some(skipped) = memchr::memchr(byte, &self.subject[at..]) else {
                    return Ok(None);
                };
                self.meter.charge(skipped / BYTES_PER_STEP)?;
                at += skipped;
            }
            if let Some(end) = self.match_at(at)? {
                return Ok(Some(at..end));
            }
            at += 1;
        }
        Ok(None)
    }

    /// How many captures the last match has.
    pub(crate) fn capture_count(&self) -> usize {
        self.level
    }

    /// A capture of the last match, from 0; without captures the first one is the whole of it.
    ///
    /// # Errors
    /// There is none with this number, or it has no `)`.
    pub(crate) fn capture(&self, index: usize, whole: &Range<usize>) -> Result<Captured<'t>, PatternError> {
        if index >= self.level {
            return match index {
                0 => Ok(Captured::Text(&self.subject[whole.clone()])),
                _ => Err(PatternError::NoSuchCapture),
            };
        }
        let Capture { begin, extent } = self.captures[index];
        match extent {
            Extent::Open => Err(PatternError::CaptureNotClosed),
            Extent::Position => Ok(Captured::Position(begin + 1)),
            Extent::Bytes(length) => Ok(Captured::Text(&self.subject[begin..begin + length])),
        }
    }

    /// The byte of the pattern, and zero after its end.
    fn item(&self, at: usize) -> u8 {
        self.pattern.get(at).copied().unwrap_or(0)
    }

    fn match_from(&mut self, at: usize, item: usize) -> Matched {
        if self.depth == 0 {
            return Err(PatternError::TooComplex);
        }
        self.meter.charge(1)?;
        self.depth -= 1;
        let matched = self.match_items(at, item)?;
        self.depth += 1;
        Ok(matched)
    }

    /// Matches what is left of the pattern.
    fn match_items(&mut self, mut at: usize, mut item: usize) -> Matched {
        while let Some(&byte) = self.pattern.get(item) {
            match byte {
                b'(' if self.item(item + 1) == b')' => return self.open(at, item + 2, Extent::Position),
                b'(' => return self.open(at, item + 1, Extent::Open),
                b')' => return self.close(at, item + 1),
                b'$' if item + 1 == self.pattern.len() => {
                    return Ok((at == self.subject.len()).then_some(at));
                }
                ESCAPE => match self.item(item + 1) {
                    b'b' => match self.balance(at, item + 2)? {
                        Some(end) => {
                            (at, item) = (end, item + 4);
                            continue;
                        }
                        None => return Ok(None),
                    },
                    b'f' => match self.frontier(at, item + 2)? {
                        Some(end) => {
                            item = end;
                            continue;
                        }
                        None => return Ok(None),
                    },
                    digit @ b'0'..=b'9' => match self.reference(at, digit)? {
                        Some(end) => {
                            (at, item) = (end, item + 2);
                            continue;
                        }
                        None => return Ok(None),
                    },
                    _ => {}
                },
                _ => {}
            }
            let end = self.class_end(item)?;
            // A set is looked through byte by byte.
            self.meter.charge(end - item)?;
            let suffix = self.item(end);
            if !self.is_single(at, item, end) {
                if !matches!(suffix, b'*' | b'?' | b'-') {
                    return Ok(None);
                }
                item = end + 1;
                continue;
            }
            match suffix {
                b'?' => match self.match_from(at + 1, end + 1)? {
                    None => item = end + 1,
                    matched => return Ok(matched),
                },
                b'+' => return self.expand_most(at + 1, item, end),
                b'*' => return self.expand_most(at, item, end),
                b'-' => return self.expand_least(at, item, end),
                _ => (at, item) = (at + 1, end),
            }
        }
        Ok(Some(at))
    }

    /// Where a class or a set that begins here ends.
    fn class_end(&self, begin: usize) -> Result<usize, PatternError> {
        let mut at = begin + 1;
        match self.item(begin) {
            ESCAPE if at == self.pattern.len() => Err(PatternError::EndsWithPercent),
            ESCAPE => Ok(at + 1),
            b'[' => {
                if self.item(at) == b'^' {
                    at += 1;
                }
                // The first byte is never the end.
                loop {
                    let &byte = self.pattern.get(at).ok_or(PatternError::SetNotClosed)?;
                    at += 1;
                    if byte == ESCAPE && at < self.pattern.len() {
                        at += 1;
                    }
                    if self.item(at) == b']' {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(at),
        }
    }

    /// Whether one byte of the subject fits the class from `item` to `end`.
    #[inline]
    fn is_single(&self, at: usize, item: usize, end: usize) -> bool {
        let Some(&byte) = self.subject.get(at) else {
            return false;
        };
        match self.pattern[item] {
            b'.' => true,
            ESCAPE => is_in_class(byte, self.item(item + 1)),
            b'[' => is_in_set(byte, &self.pattern[item + 1..end - 1]),
            literal => literal == byte,
        }
    }

    /// As many as fit, and then fewer.
    fn expand_most(&mut self, at: usize, item: usize, end: usize) -> Matched {
        let mut count = 0;
        if self.pattern[item] == b'.' {
            count = self.subject.len() - at;
        } else {
            while self.is_single(at + count, item, end) {
                self.meter.charge(end - item)?;
                count += 1;
            }
        }
        loop {
            if let Some(matched) = self.match_from(at + count, end + 1)? {
                return Ok(Some(matched));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    /// As few as possible, and then more.
    fn expand_least(&mut self, mut at: usize, item: usize, end: usize) -> Matched {
        loop {
            self.meter.charge(end - item)?;
            if let Some(matched) = self.match_from(at, end + 1)? {
                return Ok(Some(matched));
            }
            if !self.is_single(at, item, end) {
                return Ok(None);
            }
            at += 1;
        }
    }

    /// `(` and `()`.
    fn open(&mut self, at: usize, item: usize, extent: Extent) -> Matched {
        let capture = self.captures.get_mut(self.level).ok_or(PatternError::TooManyCaptures)?;
        *capture = Capture { begin: at, extent };
        self.level += 1;
        let matched = self.match_from(at, item)?;
        if matched.is_none() {
            self.level -= 1;
        }
        Ok(matched)
    }

    /// `)`
    fn close(&mut self, at: usize, item: usize) -> Matched {
        let open = |capture: &Capture| matches!(capture.extent, Extent::Open);
        let index = self.captures[..self.level].iter().rposition(open).ok_or(PatternError::NothingToClose)?;
        self.captures[index].extent = Extent::Bytes(at - self.captures[index].begin);
        let matched = self.match_from(at, item)?;
        if matched.is_none() {
            self.captures[index].extent = Extent::Open;
        }
        Ok(matched)
    }

    /// `%b` and two bytes, which begin at `item`.
    fn balance(&mut self, at: usize, item: usize) -> Matched {
        let Some(&[opening, closing]) = self.pattern.get(item..item + 2) else {
            return Err(PatternError::BalanceWithoutArguments);
        };
        if self.subject.get(at) != Some(&opening) {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for (index, &byte) in self.subject.iter().enumerate().skip(at + 1) {
            self.meter.charge(1)?;
            // Two bytes that are equal close at once.
            if byte == closing {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(index + 1));
                }
            } else if byte == opening {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%f` and a set, which begins at `item`. Where the set ends, if the frontier is here.
    fn frontier(&mut self, at: usize, item: usize) -> Matched {
        if self.item(item) != b'[' {
            return Err(PatternError::FrontierWithoutSet);
        }
        let end = self.class_end(item)?;
        self.meter.charge(end - item)?;
        let set = &self.pattern[item + 1..end - 1];
        let byte = |at: usize| self.subject.get(at).copied().unwrap_or(0);
        let before = at.checked_sub(1).map_or(0, byte);
        Ok((!is_in_set(before, set) && is_in_set(byte(at), set)).then_some(end))
    }

    /// `%1` and its like: the same text again.
    fn reference(&mut self, at: usize, digit: u8) -> Matched {
        let index = usize::from(digit).checked_sub(usize::from(b'1'));
        let capture = index.and_then(|index| self.captures[..self.level].get(index));
        let (begin, length) = match capture {
            None | Some(Capture { extent: Extent::Open, .. }) => {
                return Err(PatternError::NoSuchReference(digit - b'0'));
            }
            // A place is no text.
            Some(Capture { extent: Extent::Position, .. }) => return Ok(None),
            Some(&Capture { begin, extent: Extent::Bytes(length) }) => (begin, length),
        };
        self.meter.charge(length / BYTES_PER_STEP + 1)?;
        let fits = self.subject[at..].starts_with(&self.subject[begin..begin + length]);
        Ok(fits.then_some(at + length))
    }
}

/// What each match begins with, if that is one certain byte: then the others are not tried. Nothing before it can be an error.
fn first_byte(pattern: &[u8]) -> Option<u8> {
    let pattern = pattern.strip_prefix(b"(").unwrap_or(pattern);
    let (byte, suffix) = match *pattern {
        [ESCAPE, byte, ref rest @ ..] if !byte.is_ascii_alphanumeric() => (byte, rest.first()),
        [b'(' | b')' | b'.' | b'[' | b'$' | ESCAPE, ..] | [] => return None,
        [byte, ref rest @ ..] => (byte, rest.first()),
    };
    (!matches!(suffix, Some(b'*' | b'?' | b'-'))).then_some(byte)
}

#[cfg(test)]
#[path = "matcher_tests.rs"]
mod tests;
