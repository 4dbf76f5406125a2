//! One pass over the original that finds where to edit it. Bytes that cannot begin anything cost one table
//! lookup; at the others a shape looks ahead over a bounded window, so the whole is linear in the text.

use crate::fold::{Folded, fold, punctuation};
use crate::invisible::{is_invisible, stays};
use crate::quick;
use crate::shapes::{self, Budget, Ending, LineStart, React, Role, Verdict};
use crate::skeleton::{Unit, Window};
use crate::tally::Family;

/// One change of the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Offset in the original.
    pub(crate) at: usize,
    pub(crate) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Insert the mark.
    Mark(Family),
    /// Replace `count` invisible or control characters up to `end`, of which `first` is the first, by a note.
    Note { first: char, count: usize, end: usize, family: Family },
}

/// Finds every edit, in the order of their offsets.
pub(crate) fn scan(text: &str, ending: Ending) -> Vec<Edit> {
    let mut scan = Scan {
        text,
        bytes: text.as_bytes(),
        ending,
        edits: Vec::new(),
        openers: Vec::new(),
        closers: Vec::new(),
        turns: Vec::new(),
        roles: [false; 4],
        steps: Vec::new(),
        react: false,
        spelled_break: 0,
        units: Vec::new(),
        budget: Budget::new(text),
    };
    scan.run();
    scan.finish()
}

struct Scan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    ending: Ending,
    edits: Vec<Edit>,
    /// Openers that count only if a closer with their key follows.
    openers: Vec<(u64, Edit)>,
    /// Closers met, with their offsets, in order.
    closers: Vec<(u64, usize)>,
    /// Turns that count only beside a turn of somebody else.
    turns: Vec<usize>,
    roles: [bool; 4],
    /// Steps of a ReAct loop that count only beside one that is unmistakable.
    steps: Vec<usize>,
    react: bool,
    /// Where the last line break ended that is spelled out (`&#10;`), and so is not seen by looking back.
    spelled_break: usize,
    units: Vec<Unit>,
    budget: Budget,
}

impl Scan<'_> {
    fn run(&mut self) {
        self.begin_line(0, 0);
        let mut at = 0;
        while let Some(found) = quick::next(self.bytes, at) {
            at = self.visit(found);
        }
    }

    /// Judges what begins at `at` and returns where to go on.
    fn visit(&mut self, at: usize) -> usize {
        let byte = self.bytes[at];
        let next = at + 1;
        match byte {
            b'\n' => {
                self.begin_line(at, next);
                next
            }
            b'<' | b'[' | b'"' | b'`' | b'#' => {
                self.judge(at, byte);
                next
            }
            b'|' => {
                if self.bytes.get(next) == Some(&b'>') {
                    self.settle(shapes::closing_bar(self.text, at));
                }
                next
            }
            b'\\' if matches!(self.bytes.get(next), Some(b'n' | b'r')) => {
                self.begin_line(at, next + 1);
                next + 1
            }
            b'~' => {
                self.settle(shapes::tilde(self.text, at));
                next
            }
            b'&' | b'\\' | b'%' => self.spelled(at, next),
            b'\r' if self.bytes.get(next) == Some(&b'\n') => next,
            0x80.. => self.beyond_ascii(at),
            _ => {
                self.note(at, char::from(byte), next, 1, Family::Control);
                next
            }
        }
    }

    fn beyond_ascii(&mut self, at: usize) -> usize {
        // Kana and emoji are frequent and none of them is invisible or passes for an opener.
        match (self.bytes[at], self.bytes.get(at + 1)) {
            (0xe3, Some(0x81..=0x83)) => return at + 3,
            (0xf0, Some(0x9f)) => return at + 4,
            _ => {}
        }
        let Some(c) = self.text[at..].chars().next() else { return at + 1 };
        let next = at + c.len_utf8();
        if is_invisible(c) {
            return if stays(self.text, at, c) { next } else { self.invisible_run(at, c) };
        }
        if c.is_control() {
            self.note(at, c, next, 1, Family::Control);
            return next;
        }
        match punctuation(c) {
            Some(b'\n') => {
                self.begin_line(at, next);
                self.spelled_break = next;
            }
            Some(byte @ (b'<' | b'[' | b'"' | b'`' | b'#')) => self.judge(at, byte),
            Some(b'&' | b'\\' | b'%') => return self.spelled(at, next),
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
        self.note(at, first, end, count, Family::Invisible);
        end
    }

    /// An escape: judged by what it spells. `next` is where its first character ends.
    fn spelled(&mut self, at: usize, next: usize) -> usize {
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
        self.judge(at, byte);
        next
    }

    fn judge(&mut self, at: usize, byte: u8) {
        let before = match self.text[..at].chars().next_back() {
            // Not a letter but the end of a line break or tab that is spelled out.
            Some('n' | 'r' | 't') if self.bytes[..at - 1].ends_with(b"\\") => Some(' '),
            before => before,
        };
        let mut window = Window::new(self.text, at, &mut self.units);
        if window.get(0) != byte {
            return;
        }
        let again = before.is_some_and(|c| fold(c) == Folded::One(byte));
        let verdict = match byte {
            b'<' => shapes::tag(&mut window, before, self.ending),
            b'[' => shapes::bracket(&mut window, before, self.ending),
            b'"' => shapes::json_call(&mut window, self.ending, &mut self.budget),
            b'`' if !again => shapes::fence(&mut window, self.ending),
            b'#' if !again => shapes::heading(&mut window, self.ending),
            _ => return,
        };
        self.settle(verdict);
    }

    fn settle(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Clean => {}
            Verdict::Mark { at, family } => self.mark(at, family),
            Verdict::Closer { at, family, key } => {
                self.closers.push((key, at));
                self.mark(at, family);
            }
            Verdict::Opener { at, family, key } => {
                self.openers.push((key, Edit { at, what: What::Mark(family) }));
            }
        }
        if matches!(verdict, Verdict::Mark { family: Family::Fence, .. }) {
            self.react = true;
        }
    }

    /// Whether the line that ends at `at` is blank; the beginning of the text is no line.
    fn ends_blank(&self, at: usize) -> bool {
        let line =
            self.text[..at].trim_end_matches(|c: char| matches!(c, '\\') || c.is_whitespace() && c != '\n');
        // `\n` spelled out loses its backslash with the line in front of it: look at both.
        let spelled = |end: usize| end >= 2 && matches!(&self.bytes[end - 2..end], [b'\\', b'n' | b'r']);
        line.ends_with('\n')
            || spelled(line.len())
            || self.spelled_break > 0 && self.spelled_break == line.len()
    }

    /// Judges the line that begins at `at`, behind the break that begins at `line_break`.
    fn begin_line(&mut self, line_break: usize, at: usize) {
        if !quick::may_begin_turn(self.bytes, at) {
            return;
        }
        let mut window = Window::new(self.text, at, &mut self.units);
        match shapes::line_start(&mut window) {
            LineStart::Nothing => {}
            LineStart::Marker(at) => self.mark(at, Family::Turn),
            LineStart::Turn(role, mark) => {
                self.roles[role as usize] = true;
                let first = at == 0 && matches!(role, Role::Human | Role::Assistant);
                if first || self.ends_blank(line_break) {
                    self.mark(mark, Family::Turn);
                } else {
                    self.turns.push(mark);
                }
            }
            LineStart::React(React::Input, mark) => {
                self.react = true;
                self.mark(mark, Family::Turn);
            }
            LineStart::React(React::Action | React::Other, mark) => self.steps.push(mark),
        }
    }

    fn mark(&mut self, at: usize, family: Family) {
        self.edits.push(Edit { at, what: What::Mark(family) });
    }

    fn note(&mut self, at: usize, first: char, end: usize, count: usize, family: Family) {
        self.edits.push(Edit { at, what: What::Note { first, count, end, family } });
    }

    /// Decides what waited for something further on.
    fn finish(mut self) -> Vec<Edit> {
        let turn = |at| Edit { at, what: What::Mark(Family::Turn) };
        if self.roles.iter().filter(|&&seen| seen).count() > 1 {
            self.edits.extend(self.turns.into_iter().map(turn));
        }
        if self.react {
            self.edits.extend(self.steps.into_iter().map(turn));
        }
        if !self.openers.is_empty() && !self.closers.is_empty() {
            let mut last: std::collections::HashMap<u64, usize> = std::collections::HashMap::new();
            last.extend(self.closers);
            let closed =
                self.openers.into_iter().filter(|(key, edit)| last.get(key).is_some_and(|&at| at > edit.at));
            self.edits.extend(closed.map(|(_, edit)| edit));
        }
        if !self.edits.is_sorted_by_key(|edit| edit.at) {
            // Stable: a mark found first stays in front of a note at the same place.
            self.edits.sort_by_key(|edit| edit.at);
        }
        self.edits.dedup_by(|later, earlier| {
            later.at == earlier.at && matches!((later.what, earlier.what), (What::Mark(_), What::Mark(_)))
        });
        self.edits
    }
}
