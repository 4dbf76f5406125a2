//! One pass over the original that finds where to edit it. Bytes that cannot begin syntax are skipped 64 at a
//! time; at the others a shape looks ahead over a bounded window, so the whole is linear in the text.

use crate::candidates::Candidates;
use crate::family_counts::{Family, FindingKind};
use crate::fold::{Folded, SYMBOL, fold, is_symbol, punctuation};
use crate::invisible::{is_invisible, stays};
use crate::prefilter;
use crate::role::{Role, RoleSet};
use crate::shapes::{self, Budget, LineStart, ReActStep, TextEnd, Verdict};
use crate::skeleton::Window;
use crate::unit::Unit;

/// One change to the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Offset in the original.
    pub(crate) at: usize,
    pub(crate) kind: EditKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditKind {
    /// Insert the mark.
    Mark(Family, FindingKind),
    /// Replace `count` invisible or control characters up to `end`, of which `first` is the first, by a note.
    Note { first: char, count: usize, end: usize, family: Family },
}

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
    scan.finish()
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
    edits: Vec<Edit>,
    /// Openers that count only if a closer with their key follows.
    openers: Vec<(u64, Option<Role>, Edit)>,
    /// The closers found so far, with their offsets, in order.
    closers: Vec<(u64, usize)>,
    /// Turns that count only beside a turn of another speaker.
    turns: Vec<(Role, Edit)>,
    /// The same in the middle of a line: they count where a person asks and a model answers.
    mid_line_turns: Vec<Edit>,
    mid_line_roles: RoleSet,
    line_roles: RoleSet,
    /// Speakers named by tags and brackets.
    named_roles: RoleSet,
    /// Edits that count only beside a heading of a prompt.
    near_heading: Vec<Edit>,
    has_prompt_heading: bool,
    /// Steps of a ReAct loop that count only beside one that is unmistakable.
    steps: Vec<Edit>,
    has_react_step: bool,
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
            edits: Vec::new(),
            openers: Vec::new(),
            closers: Vec::new(),
            turns: Vec::new(),
            mid_line_turns: Vec::new(),
            mid_line_roles: RoleSet::default(),
            line_roles: RoleSet::default(),
            named_roles: RoleSet::default(),
            near_heading: Vec::new(),
            has_prompt_heading: false,
            steps: Vec::new(),
            has_react_step: false,
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
                    self.apply_verdict(shapes::closing_bar(self.text, at), FindingKind::Plain);
                }
                next
            }
            b'\\' if matches!(self.bytes.get(next), Some(b'n' | b'r')) => {
                self.begin_line(at, next + 1);
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
                self.note(at, char::from(byte), next, 1, Family::Control);
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
            self.note(at, c, next, 1, Family::Control);
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
        self.note(at, first, end, count, Family::Invisible);
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
            // However often it is escaped, it decodes to nothing further, and neither does anything inside it.
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
        if self.bytes.get(colon + 1) == Some(&b':') {
            return;
        }
        if let Some((role, end)) = shapes::speaker(self.text, colon) {
            if let Some(role) = role {
                self.mid_line_roles.add(role);
            }
            self.mid_line_turns.push(mark(end, Family::Turn, kind));
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
            b'#' if !again => {
                let verdict = shapes::heading(&mut window, self.text_end);
                self.has_prompt_heading |= matches!(verdict, Verdict::Mark { .. });
                verdict
            }
            b'~' => shapes::tilde(&mut window, self.text_end),
            SYMBOL => shapes::symbol(&mut window),
            _ => return,
        };
        self.apply_verdict(verdict, kind);
    }

    fn apply_verdict(&mut self, verdict: Verdict, kind: FindingKind) {
        match verdict {
            Verdict::Clean => {}
            Verdict::Mark { at, family } => self.edits.push(mark(at, family, kind)),
            Verdict::Closer { at, family, key } => {
                self.closers.push((key, at));
                self.edits.push(mark(at, family, kind));
            }
            Verdict::Opener { at, family, key, role } => {
                if let Some(role) = role {
                    self.named_roles.add(role);
                }
                self.openers.push((key, role, mark(at, family, kind)));
            }
            Verdict::Speaker { at, family, role } => {
                self.named_roles.add(role);
                self.edits.push(mark(at, family, kind));
            }
            Verdict::NearHeading { at, family } => self.near_heading.push(mark(at, family, kind)),
        }
        if matches!(verdict, Verdict::Mark { family: Family::Fence, .. }) {
            self.has_react_step = true;
        }
    }

    /// Whether the line that ends at `at` is blank; the beginning of the text is not a line.
    fn ends_blank(&self, at: usize) -> bool {
        let line =
            self.text[..at].trim_end_matches(|c: char| matches!(c, '\\') || c.is_whitespace() && c != '\n');
        // The backslash of an escaped `\n` is trimmed with the line before it, so check both.
        let spelled = |end: usize| end >= 2 && matches!(&self.bytes[end - 2..end], [b'\\', b'n' | b'r']);
        line.ends_with('\n')
            || spelled(line.len())
            || self.spelled_break > 0 && self.spelled_break == line.len()
    }

    /// Checks the line that begins at `at`, behind the break that begins at `line_break`.
    fn begin_line(&mut self, line_break: usize, at: usize) {
        if !self.thorough && !prefilter::may_begin_turn(self.bytes, at) {
            return;
        }
        let mut window = Window::new(self.text, at, &mut self.units);
        let start = shapes::line_start(&mut window);
        let turn = |end: usize| mark(end, Family::Turn, kind_of_line(&self.bytes[at..end]));
        match start {
            LineStart::Nothing => {}
            LineStart::Marker(end) => self.edits.push(turn(end)),
            LineStart::BrokenTurn(role) => self.line_roles.add(role),
            LineStart::BrokenStep => self.has_react_step = true,
            LineStart::Heading(end) => self.mid_line_turns.push(turn(end)),
            LineStart::Turn(role, end) => {
                self.line_roles.add(role);
                let first = at == 0 && matches!(role, Role::Human | Role::Assistant);
                if role != Role::Bot && (first || self.ends_blank(line_break)) {
                    self.edits.push(turn(end));
                } else {
                    self.turns.push((role, turn(end)));
                }
            }
            LineStart::React(ReActStep::Input, end) => {
                self.has_react_step = true;
                self.edits.push(turn(end));
            }
            LineStart::React(ReActStep::Action | ReActStep::Other, end) => self.steps.push(turn(end)),
        }
    }

    fn note(&mut self, at: usize, first: char, end: usize, count: usize, family: Family) {
        self.edits.push(Edit { at, kind: EditKind::Note { first, count, end, family } });
    }

    /// Resolves the findings that depend on others further on.
    fn finish(mut self) -> Vec<Edit> {
        let asked = self.line_roles.has_question_and_answer(self.mid_line_roles);
        if asked || self.line_roles.has_dialogue() {
            let counts = |role| role != Role::Bot || asked;
            let turns = self.turns.into_iter().filter(|&(role, _)| counts(role));
            self.edits.extend(turns.map(|(_, edit)| edit));
        }
        if asked {
            self.edits.extend(self.mid_line_turns);
        }
        if self.has_prompt_heading {
            self.edits.extend(self.near_heading);
        }
        if self.has_react_step {
            self.edits.extend(self.steps);
        }
        let conversation = self.named_roles.has_question_and_answer(self.named_roles);
        if !self.openers.is_empty() && (conversation || !self.closers.is_empty()) {
            let mut last: std::collections::HashMap<u64, usize> = std::collections::HashMap::new();
            last.extend(self.closers);
            let counting = self.openers.into_iter().filter(|(key, role, edit)| {
                conversation && role.is_some() || last.get(key).is_some_and(|&at| at > edit.at)
            });
            self.edits.extend(counting.map(|(_, _, edit)| edit));
        }
        if !self.edits.is_sorted_by_key(|edit| edit.at) {
            // Stable: a mark that was found first stays in front of a note at the same place.
            self.edits.sort_by_key(|edit| edit.at);
        }
        self.edits.dedup_by(|later, earlier| {
            later.at == earlier.at
                && matches!((later.kind, earlier.kind), (EditKind::Mark(..), EditKind::Mark(..)))
        });
        self.edits
    }
}

fn mark(at: usize, family: Family, kind: FindingKind) -> Edit {
    Edit { at, kind: EditKind::Mark(family, kind) }
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
