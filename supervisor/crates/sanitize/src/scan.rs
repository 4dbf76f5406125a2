//! One pass over the original that finds where to edit it. Bytes that cannot begin syntax are skipped 64 at a
//! time; at the others a shape looks ahead over a bounded window, so the whole is linear in the text.

use crate::candidates::Candidates;
use crate::edit::Edit;
use crate::family_counts::{Family, FindingKind};
use crate::fold::{Folded, SYMBOL, fold, is_symbol, punctuation};
use crate::invisible::{is_invisible, stays};
use crate::prefilter;
use crate::role::Role;
use crate::shapes::{self, Budget, MidLine, TextEnd};
use crate::skeleton::Window;
use crate::truncate::prefix;
use crate::unit::Unit;

mod findings;

use findings::Findings;

/// Finds every edit, in the order of their offsets.
pub(crate) fn scan(text: &str, ending: TextEnd) -> Vec<Edit> {
    scan_from(text, ending, 0)
}

/// The same if the prefilter rejected everything in front of `from`, except the beginning of the text.
pub(crate) fn scan_from(text: &str, ending: TextEnd, from: usize) -> Vec<Edit> {
    let bytes = text.as_bytes();
    let mut candidates = Candidates::new(bytes);
    let first = next_candidate(&mut candidates, bytes, from);
    let turn = prefilter::may_begin_turn(bytes, 0);
    if first.is_none() && !turn {
        // Nearly every text ends here.
        return Vec::new();
    }
    let mut scan = Scan::new(text, ending);
    scan.run(first, candidates);
    scan.findings.finish()
}

/// The first candidate from `at` on that passes the prefilter.
#[inline]
fn next_candidate(candidates: &mut Candidates<'_>, bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let found = candidates.next(at)?;
        if prefilter::may_match(bytes, found) {
            return Some(found);
        }
        at = found + 1;
    }
}

/// The first offset at which a scan has to look for control syntax. There may be none in the end.
pub(crate) fn first_candidate(bytes: &[u8]) -> Option<usize> {
    let mut candidates = Candidates::new(bytes);
    let mut at = 0;
    while let Some(found) = next_candidate(&mut candidates, bytes, at) {
        // Most controls only become notes; a carriage return begins a line too.
        if !bytes[found].is_ascii_control() || matches!(bytes[found], b'\n' | b'\r') {
            return Some(found);
        }
        at = found + 1;
    }
    prefilter::may_begin_turn(bytes, 0).then_some(bytes.len())
}

struct Scan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    text_end: TextEnd,
    /// Checks every line, even if the prefilter says that no turn begins there.
    thorough: bool,
    findings: Findings,
    /// The end of the last escaped line break (`&#10;`), which looking back would not find.
    spelled_break: usize,
    units: Vec<Unit>,
    budget: Budget,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str, text_end: TextEnd) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            text_end,
            findings: Findings::default(),
            spelled_break: 0,
            units: Vec::new(),
            budget: Budget::new(text),
            thorough: false,
        }
    }

    /// Visits all candidates, of which `first` is the first.
    fn run(&mut self, first: Option<usize>, mut candidates: Candidates<'_>) {
        self.begin_line(0, 0);
        let mut worthy = first;
        while let Some(found) = worthy {
            let at = self.visit(found);
            worthy = next_candidate(&mut candidates, self.bytes, at);
        }
    }

    /// Checks what begins at `at` and returns the offset to continue at.
    fn visit(&mut self, at: usize) -> usize {
        let byte = self.bytes[at];
        let next = at + 1;
        match byte {
            b'\n' => {
                self.begin_line(at, next);
                self.colon(next, FindingKind::Plain);
                next
            }
            b'<' | b'[' | b'"' | b'`' | b'#' => {
                self.judge(at, byte, FindingKind::Plain);
                next
            }
            b'|' => {
                if self.bytes.get(next) == Some(&b'>') {
                    self.findings.add(shapes::closing_bar(self.text, at), FindingKind::Plain);
                }
                next
            }
            b'\\' if matches!(self.bytes.get(next), Some(b'n' | b'r')) => {
                self.begin_line(at, next + 1);
                self.colon(next + 1, FindingKind::Plain);
                next + 1
            }
            // A quoted opener is checked on its own turn, and of a run of backslashes the last one.
            b'\\'
                if matches!(self.bytes.get(next), Some(b'<' | b'[' | b'"' | b'`' | b'#' | b'~' | b'\\')) =>
            {
                next
            }
            b'~' => {
                self.judge(at, byte, FindingKind::Plain);
                next
            }
            b'&' | b'\\' | b'%' => self.visit_escape(at, next),
            b'\r' if self.bytes.get(next) == Some(&b'\n') => next,
            // The byte in front of a colon; the rest of a non-ASCII character too.
            b'\t' | b'\x0c' | b' '..=b'~' => {
                self.colon(next, FindingKind::Plain);
                next
            }
            0x80..=0xbf => {
                self.colon(next, FindingKind::LookAlike);
                next
            }
            0xc0.. => self.visit_non_ascii(at),
            _ => {
                self.findings.add_note(at, char::from(byte), next, 1, Family::Control);
                if byte == b'\r' {
                    // A terminal continues at the beginning of the line.
                    self.begin_line(at, next);
                }
                next
            }
        }
    }

    fn visit_non_ascii(&mut self, at: usize) -> usize {
        // Kana and emoji are frequent and none of them is invisible or passes for an opener.
        match (self.bytes[at], self.bytes.get(at + 1)) {
            (0xe3, Some(0x81..=0x83)) => return at + 3,
            (0xf0, Some(0x9f)) => return at + 4,
            _ => {}
        }
        let Some(c) = self.text[at..].chars().next() else { return at + 1 };
        let next = at + c.len_utf8();
        if is_invisible(c) {
            if !stays(self.text, at, c) {
                return self.invisible_run(at, c);
            }
            self.colon(next, FindingKind::LookAlike);
            return next;
        }
        if c.is_control() {
            self.findings.add_note(at, c, next, 1, Family::Control);
            return next;
        }
        match punctuation(c) {
            Some(b'\n') => {
                self.begin_line(at, next);
                self.spelled_break = next;
            }
            Some(byte @ (b'<' | b'[' | b'"' | b'`' | b'#' | b'~')) => {
                self.judge(at, byte, FindingKind::LookAlike)
            }
            Some(b':') => self.speaker(at, FindingKind::LookAlike),
            None if self.bytes.get(next) == Some(&b':') => self.speaker(next, FindingKind::LookAlike),
            None if is_symbol(c) => self.judge(at, SYMBOL, FindingKind::Plain),
            Some(b'&' | b'\\' | b'%') => return self.visit_escape(at, next),
            _ => {}
        }
        next
    }

    fn invisible_run(&mut self, at: usize, first: char) -> usize {
        let (mut end, mut count) = (at, 0);
        for c in self.text[at..].chars() {
            if !is_invisible(c) || stays(self.text, end, c) {
                break;
            }
            end += c.len_utf8();
            count += 1;
        }
        self.findings.add_note(at, first, end, count, Family::Invisible);
        end
    }

    /// Checks an escape by the character it stands for. `next` is the end of its first character.
    fn visit_escape(&mut self, at: usize, next: usize) -> usize {
        let mut window = Window::new(self.text, at, &mut self.units);
        if !window.starts_here() {
            return next;
        }
        let byte = window.get(0);
        if byte == b'\n' {
            let end = window.end_of(0);
            self.begin_line(at, end);
            self.spelled_break = end;
            return end;
        }
        match byte {
            b'<' | b'[' | b'"' | b'`' | b'#' | b'~' | SYMBOL => self.judge(at, byte, FindingKind::Spelled),
            b':' => self.speaker(at, FindingKind::Spelled),
            // However often it is escaped, it decodes to nothing further, and neither does anything inside
            // it.
            b'\\' | b'%' | b'&' => return window.end_of(0).max(next),
            _ => {}
        }
        next
    }

    /// Checks the word in front of `at` if a colon stands there.
    fn colon(&mut self, at: usize, kind: FindingKind) {
        if self.bytes.get(at) == Some(&b':') {
            self.speaker(at, kind);
        }
    }

    /// Checks the word in front of a colon.
    fn speaker(&mut self, colon: usize, kind: FindingKind) {
        if let Some((found, end)) = shapes::speaker(self.text, colon) {
            // A path of source code: `User::new`.
            let is_path = matches!(
                self.bytes.get(colon + 1..),
                Some([b':'] | [b':', b'_' | b'<' | b'{' | b'*' | b'a'..=b'z' | b'A'..=b'Z', ..])
            );
            if found != MidLine::Input && is_path {
                return;
            }
            let speaks =
                !shapes::describes_speaker(self.text, end) && !shapes::mentions_speaker(self.text, end);
            self.findings.add_mid_line(found, speaks, Edit::mark(end, Family::Turn, kind));
        }
    }

    /// Checks the opener at `at`, which stands for `byte` and is written as `kind`.
    fn judge(&mut self, at: usize, byte: u8, kind: FindingKind) {
        let before = match self.text[..at].chars().rev().find(|&c| !is_invisible(c)) {
            // Not a letter but the end of an escaped line break or tab.
            Some('n' | 'r' | 't')
                if self.text[..at].ends_with(['n', 'r', 't']) && self.bytes[..at - 1].ends_with(b"\\") =>
            {
                Some(' ')
            }
            // An escape may end in letters that belong to no identifier.
            Some(c) if c.is_ascii_alphanumeric() => match shapes::folded_before(self.text, at).0 {
                byte if byte.is_ascii_punctuation() => Some(char::from(byte)),
                _ => Some(c),
            },
            before => before,
        };
        let mut window = Window::new(self.text, at, &mut self.units);
        if window.get(0) != byte {
            return;
        }
        let again = before.is_some_and(|c| fold(c) == Folded::One(byte));
        let verdict = match byte {
            b'<' => shapes::tag(&mut window, before, self.text_end),
            b'[' => shapes::bracket(&mut window, before, self.text_end),
            b'"' => shapes::json_call(&mut window, self.text_end, &mut self.budget),
            b'`' if !again => shapes::fence(&mut window, self.text_end),
            b'#' if !again => shapes::heading(&mut window, self.text_end),
            b'~' => shapes::tilde(&mut window, self.text_end),
            SYMBOL => shapes::symbol(&mut window),
            _ => return,
        };
        self.findings.add(verdict, kind);
    }

    /// Checks the line that begins at `at`, behind the break that begins at `line_break`.
    fn begin_line(&mut self, line_break: usize, at: usize) {
        if !self.thorough && !prefilter::may_begin_turn(self.bytes, at) {
            return;
        }
        let mut window = Window::new(self.text, at, &mut self.units);
        let start = shapes::line_start(&mut window);
        let mark = |end: usize| Edit::mark(end, Family::Turn, kind_of_line(&self.bytes[at..end]));
        let (text, spelled_break) = (self.text, self.spelled_break);
        let opens = |role: Role| {
            at == 0 && matches!(role, Role::Human | Role::Assistant)
                || matches!(role, Role::Human | Role::Assistant)
                    && is_blank_before(text, line_break, spelled_break)
        };
        let is_field = |role| matches!(role, Role::System | Role::User) && is_in_form(text, at);
        let speaks = |end: usize| !shapes::describes_speaker(text, end);
        self.findings.add_line_start(start, opens, is_field, speaks, mark);
    }
}

/// Whether the line that ends at `at` is blank; the beginning of the text is not a line. `spelled_break` is
/// the end of the last escaped line break.
fn is_blank_before(text: &str, at: usize, spelled_break: usize) -> bool {
    let line = text[..at].trim_end_matches(|c: char| matches!(c, '\\') || c.is_whitespace() && c != '\n');
    // The backslash of an escaped `\n` is trimmed with the line before it, so check both.
    let spelled = |end: usize| end >= 2 && matches!(&text.as_bytes()[end - 2..end], [b'\\', b'n' | b'r']);
    line.ends_with('\n') || spelled(line.len()) || spelled_break > 0 && spelled_break == line.len()
}

/// Whether the line at `at` is beside one that only a form has: `Version: 2.4`. Only whole lines that nothing
/// disguises count.
fn is_in_form(text: &str, at: usize) -> bool {
    /// The longest key, in bytes.
    const MAX_KEY: usize = 32;
    /// How far away the other line may be, in bytes; a field's value is short.
    const MAX_LINE: usize = 512;
    let is_field = |line: &str| {
        let key = line.get(..line.find(':').unwrap_or(MAX_KEY + 1)).unwrap_or_default().trim_start();
        let is_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-');
        let ends = line.as_bytes().get(line.len() - line.trim_start().len() + key.len() + 1);
        key.len() <= MAX_KEY
            && key.starts_with(|c: char| c.is_ascii_alphabetic())
            && key.bytes().all(is_key)
            && matches!(ends, None | Some(b' ' | b'\r' | b'\n'))
            && !shapes::is_line_word(key)
    };
    let line = text[at..].trim_start_matches([' ', '\t']).as_bytes();
    let is_plain = [&b"system:"[..], b"user:"]
        .iter()
        .any(|word| line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word)));
    let near = &text[text.floor_char_boundary(at.saturating_sub(MAX_LINE))..at];
    let before = near.strip_suffix('\n').map(|before| before.rsplit('\n').next().unwrap_or_default());
    let behind = prefix(&text[at..], MAX_LINE).split_once('\n');
    is_plain
        && (before.is_some_and(is_field)
            || behind.is_some_and(|(_, lines)| is_field(lines.lines().next().unwrap_or_default())))
}

/// How the beginning of a line up to its mark is written.
fn kind_of_line(word: &[u8]) -> FindingKind {
    if word.iter().any(|byte| matches!(byte, b'&' | b'\\' | b'%')) {
        FindingKind::Spelled
    } else if word.is_ascii() {
        FindingKind::Plain
    } else {
        FindingKind::LookAlike
    }
}

#[cfg(test)]
mod tests;
