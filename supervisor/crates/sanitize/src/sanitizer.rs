//! The sanitizer: applies patterns, shapes and notes until nothing changes any more.

use std::borrow::Cow;
use std::sync::Arc;

use crate::colours;
use crate::escape;
use crate::family_counts::{Family, FamilyCounts, FindingKind};
use crate::json;
use crate::patterns::{NOTICE, Patterns, SettingsError};
use crate::scan::scan;
use crate::shapes::TextEnd;

/// How often patterns and shapes may alternate on one text. A replacement can create a new match of another
/// pattern, and so can a mark; usually there are two rounds. A text that still changes then was built for
/// that, and is replaced by the notice.
const MAX_ROUNDS: usize = 8;

/// The settings of an operator.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Regular expressions (syntax of the `regex` crate, linear time). What they match in the original text
    /// is replaced by [`NOTICE`]. Empty by default. At most [`crate::MAX_PATTERNS`].
    pub forbidden_patterns: Vec<String>,
}

/// Neutralizes control syntax in untrusted text. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Sanitizer {
    patterns: Option<Arc<Patterns>>,
}

impl Sanitizer {
    /// A sanitizer with these settings.
    ///
    /// # Errors
    ///
    /// Lists every pattern that is invalid, too large, or matches the empty string, the notice, or a mark or
    /// note that sanitizing inserts.
    pub fn new(settings: &Settings) -> Result<Self, SettingsError> {
        Ok(Self { patterns: Patterns::new(&settings.forbidden_patterns)?.map(Arc::new) })
    }

    /// The text with all control syntax neutralized, and without a terminal's colours. Clean text comes back
    /// borrowed, byte for byte.
    pub fn text<'t>(&self, text: &'t str, tally: &mut FamilyCounts) -> Cow<'t, str> {
        self.sanitize_without_colours(text, TextEnd::Open, tally)
    }

    /// JSON of the same shape in which every string and key is sanitized, and the text as a whole too.
    /// Numbers, order and white space stay unchanged; clean JSON comes back borrowed.
    ///
    /// None if the text is not one JSON value within [`crate::MAX_JSON_DEPTH`] and [`crate::MAX_JSON_BYTES`],
    /// has a key twice in one object or would have after sanitizing, or if a forbidden pattern matches across
    /// strings. The caller then treats it as text.
    pub fn json<'t>(&self, json: &'t str, tally: &mut FamilyCounts) -> Option<Cow<'t, str>> {
        if !json::is_valid(json) {
            return None;
        }
        let strings =
            if self.patterns.is_some() { json::StringFilter::All } else { json::StringFilter::Suspicious };
        let mut counted = FamilyCounts::default();
        let mut current = Cow::Borrowed(json);
        for _ in 0..MAX_ROUNDS {
            let rewritten = json::rewrite(&current, strings, |string| {
                match self.sanitize_without_colours(string, TextEnd::Closed, &mut counted) {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(clean) => Some(clean),
                }
            });
            let edits = scan(&rewritten, TextEnd::Closed);
            let next = match (rewritten, edits.is_empty()) {
                (Cow::Borrowed(_), true) => None,
                (Cow::Owned(rewritten), true) => Some(rewritten),
                (rewritten, false) => Some(escape::apply(&rewritten, &edits, &mut counted)),
            };
            let Some(next) = next else {
                if self.patterns.as_ref().is_some_and(|patterns| patterns.find(&current).is_some()) {
                    return None;
                }
                if matches!(current, Cow::Owned(_)) && !json::is_valid(&current) {
                    return None;
                }
                tally.merge(&counted);
                return Some(current);
            };
            current = Cow::Owned(next);
        }
        None
    }

    /// For a string shown on one line (log lines, names, descriptions in a terminal): like [`Self::text`],
    /// but line breaks, tabs and every other control character, those of colours too, come out visible (`\n`,
    /// `␛`, `(U+2028)`).
    pub fn line<'t>(&self, text: &'t str, tally: &mut FamilyCounts) -> Cow<'t, str> {
        let clean = self.sanitize_to_fixpoint(text, TextEnd::Open, tally);
        if !clean.contains(is_line_control) {
            return clean;
        }
        let mut out = String::with_capacity(clean.len() + 16);
        for c in clean.chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if is_line_control(c) => escape::write_note(&mut out, c, 1),
                c => out.push(c),
            }
            if is_line_control(c) {
                tally.add(Family::Control, FindingKind::Character(c));
            }
        }
        // The escapes are ordinary text: together with their neighbours they are sanitized once more.
        Cow::Owned(self.text(&out, tally).into_owned())
    }

    /// Whether [`Self::text`] would change nothing.
    pub fn is_clean(&self, text: &str) -> bool {
        self.first_finding(text).is_none()
    }

    /// The longest length, at most `max_bytes`, at which sanitized text can be cut so that the part in front
    /// is clean when it stands alone: at a character boundary, not inside a mark or a note, and not behind
    /// the first half of a token that other text could complete.
    pub fn safe_cut(&self, sanitized: &str, max_bytes: usize) -> usize {
        if sanitized.len() <= max_bytes {
            return sanitized.len();
        }
        let mut cut = sanitized.floor_char_boundary(max_bytes);
        cut = before_split_note(sanitized, cut);
        if sanitized[..cut].ends_with('\r') {
            cut -= 1;
        }
        // Each round ends in front of the opener that the cut exposed, so it gets shorter; sanitized text
        // takes one or two.
        while let Some(finding) = self.first_finding(&sanitized[..cut]) {
            cut = sanitized[..finding].char_indices().next_back().map_or(0, |(start, _)| start);
            cut = before_split_note(sanitized, cut);
        }
        cut
    }

    fn sanitize_without_colours<'t>(
        &self,
        text: &'t str,
        ending: TextEnd,
        tally: &mut FamilyCounts,
    ) -> Cow<'t, str> {
        match colours::strip(text) {
            (Cow::Borrowed(text), _) => self.sanitize_to_fixpoint(text, ending, tally),
            (Cow::Owned(plain), count) => {
                tally.add_many(Family::Control, FindingKind::Colour, count);
                Cow::Owned(self.sanitize_to_fixpoint(&plain, ending, tally).into_owned())
            }
        }
    }

    fn sanitize_to_fixpoint<'t>(
        &self,
        text: &'t str,
        ending: TextEnd,
        tally: &mut FamilyCounts,
    ) -> Cow<'t, str> {
        let mut current = Cow::Borrowed(text);
        for _ in 0..MAX_ROUNDS {
            let mut settled = true;
            if let Some(patterns) = &self.patterns
                && let Cow::Owned(replaced) = patterns.replace(&current, tally)
            {
                current = Cow::Owned(replaced);
                settled = false;
            }
            let edits = scan(&current, ending);
            if !edits.is_empty() {
                current = Cow::Owned(escape::apply(&current, &edits, tally));
                settled = false;
            }
            if settled {
                return current;
            }
        }
        tally.add(Family::Pattern, FindingKind::Plain);
        Cow::Borrowed(NOTICE)
    }

    /// The offset of the first change.
    fn first_finding(&self, text: &str) -> Option<usize> {
        let pattern = self.patterns.as_ref().and_then(|patterns| patterns.find(text));
        let edit = scan(text, TextEnd::Open).first().map(|edit| edit.at);
        pattern.into_iter().chain(edit).min()
    }
}

fn is_line_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// If the cut falls into a note such as `(U+200B ×3)`, the offset before the note.
fn before_split_note(text: &str, cut: usize) -> usize {
    /// The longest note: `(U+E0FFF ×8388608)`.
    const MAX_NOTE: usize = 24;
    let from = text.floor_char_boundary(cut.saturating_sub(MAX_NOTE));
    match text[from..cut].rfind("(U+") {
        Some(open) if !text[from + open..cut].contains(')') && is_note(&text[from + open..]) => from + open,
        _ => cut,
    }
}

fn is_note(text: &str) -> bool {
    let Some(body) = text.strip_prefix("(U+").and_then(|rest| rest.split_once(')')).map(|(body, _)| body)
    else {
        return false;
    };
    body.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ' ' | '×'))
}
