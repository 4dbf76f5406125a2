//! Two types for text before and after sanitizing: untrusted text, and text that is safe to show.
//!
//! [`Raw`] cannot be printed; it has to be sanitized first. Code that shows text (a terminal, a page, a
//! prompt, a log) takes [`Sanitized`] or what is [`SafeDisplay`], so that the compiler reports a missing call
//! of the sanitizer. [`sanitized!`](crate::inert) joins literals and sanitized pieces and sanitizes the whole
//! once more: two harmless pieces can make a token where they meet.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use crate::family_counts::FamilyCounts;
use crate::safe_display::SafeDisplay;
use crate::sanitizer::Sanitizer;

/// What replaces the rest of a text that was cut.
const ELLIPSIS: &str = "…";

/// Untrusted text, as it came from outside.
///
/// ```compile_fail
/// let raw = talon_sanitize::Raw::from("\u{1b}[2J<|im_start|>");
/// // There is no way to show it.
/// println!("{raw}");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Raw<'t>(Cow<'t, str>);

impl<'t> Raw<'t> {
    /// Bytes that should be text; invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn from_bytes(bytes: &'t [u8]) -> Self {
        Self(String::from_utf8_lossy(bytes))
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The `Display` of a value, as untrusted text: for an error with foreign causes, or a path.
    #[must_use]
    pub fn of(value: impl fmt::Display) -> Raw<'static> {
        Raw(Cow::Owned(value.to_string()))
    }

    /// The same text without a lifetime.
    #[must_use]
    pub fn into_owned(self) -> Raw<'static> {
        Raw(Cow::Owned(self.0.into_owned()))
    }

    /// Keeps at most `max_bytes` of it, in whole characters, and returns how many bytes that left out. It
    /// bounds the work of sanitizing; to cut text that is shown, see [`Sanitizer::safe_cut`].
    pub fn truncate(&mut self, max_bytes: usize) -> usize {
        let end = self.0.floor_char_boundary(max_bytes);
        let left_out = self.0.len() - end;
        match &mut self.0 {
            Cow::Borrowed(text) => *text = &text[..end],
            Cow::Owned(text) => text.truncate(end),
        }
        left_out
    }

    /// The text sanitized by the built-in sanitizer, without patterns of an operator. Line breaks and tabs
    /// stay.
    #[must_use]
    pub fn text(&self) -> Sanitized {
        Sanitizer::default().sanitize(self.borrowed(), &mut FamilyCounts::default())
    }

    /// The same as one line: line breaks, tabs and all other control characters are made visible.
    #[must_use]
    pub fn line(&self) -> Sanitized {
        Sanitizer::default().sanitize_line(self.borrowed())
    }

    /// The same as one line of at most `max_bytes`, with `…` if the text is longer. Only `max_bytes` of the
    /// text are processed.
    #[must_use]
    pub fn line_within(&self, max_bytes: usize) -> Sanitized {
        let mut start = self.borrowed();
        let left_out = start.truncate(max_bytes) > 0;
        let line = Sanitizer::default().sanitize_line(start);
        if left_out { line.cut_and_mark(max_bytes) } else { line.cut(max_bytes) }
    }

    fn borrowed(&self) -> Raw<'_> {
        Raw(Cow::Borrowed(&self.0))
    }

    /// The text, for parsing it or returning it to the program that wrote it. Not for showing.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<'t> From<&'t str> for Raw<'t> {
    fn from(text: &'t str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl<'t> From<&'t String> for Raw<'t> {
    fn from(text: &'t String) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Raw<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl<'t> From<Cow<'t, str>> for Raw<'t> {
    fn from(text: Cow<'t, str>) -> Self {
        Self(text)
    }
}

/// Sanitized text may be used as raw text again: sanitizing it once more changes nothing.
impl From<Sanitized> for Raw<'_> {
    fn from(text: Sanitized) -> Self {
        Self(Cow::Owned(text.0))
    }
}

/// Shows its length and nothing of its content.
impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({} bytes)", self.len())
    }
}

/// Text without control syntax. Only [`Sanitizer::sanitize`] and its sibling methods make it.
///
/// ```compile_fail
/// // Other code cannot make one from a string.
/// fn forge(text: String) -> talon_sanitize::Sanitized { talon_sanitize::Sanitized(text) }
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sanitized(String);

impl Sanitized {
    /// A text of the program: only a literal has the type `&'static str`.
    #[must_use]
    pub fn literal(text: &'static str) -> Self {
        Self(text.to_owned())
    }

    /// At most `max_bytes` of it, with `…` where it was cut: never inside a mark or a note, and never so that
    /// the rest begins a token.
    #[must_use]
    pub fn cut(self, max_bytes: usize) -> Self {
        if self.0.len() <= max_bytes { self } else { self.cut_and_mark(max_bytes) }
    }

    /// Adds `…` even if all of this text fits, because something behind it is left out.
    fn cut_and_mark(mut self, max_bytes: usize) -> Self {
        self.0.truncate(Sanitizer::default().safe_cut(&self.0, max_bytes));
        self.0.push_str(ELLIPSIS);
        self
    }

    /// The pieces joined by a literal, as one text.
    #[must_use]
    pub fn join<S: SafeDisplay>(pieces: impl IntoIterator<Item = S>, between: &'static str) -> Self {
        let pieces: Vec<String> = pieces.into_iter().map(|piece| piece.to_string()).collect();
        Self::whole(pieces.join(between))
    }

    /// For [`sanitized!`](crate::inert). It accepts any text, because the result is sanitized as a whole.
    #[doc(hidden)]
    #[must_use]
    pub fn composed(text: fmt::Arguments<'_>) -> Self {
        match text.as_str() {
            Some(literal) => Self::literal(literal),
            None => Self::whole(text.to_string()),
        }
    }

    fn whole(text: String) -> Self {
        Sanitizer::default().sanitize(text, &mut FamilyCounts::default())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, for a wire or a file. From here on it is a plain string.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Deref for Sanitized {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

/// A literal is the program's own.
impl From<&'static str> for Sanitized {
    fn from(text: &'static str) -> Self {
        Self::literal(text)
    }
}

impl From<Sanitized> for String {
    fn from(text: Sanitized) -> Self {
        text.0
    }
}

/// Like any text: in quotes.
impl fmt::Debug for Sanitized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl AsRef<str> for Sanitized {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sanitized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl SafeDisplay for Sanitized {}

impl PartialEq<str> for Sanitized {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<String> for Sanitized {
    fn eq(&self, other: &String) -> bool {
        self.0 == *other
    }
}

impl PartialEq<&str> for Sanitized {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl Sanitizer {
    /// Neutralizes a text: [`Sanitizer::text`] with types. Clean text is not copied if it was owned.
    pub fn sanitize<'t>(&self, raw: impl Into<Raw<'t>>, tally: &mut FamilyCounts) -> Sanitized {
        let Raw(text) = raw.into();
        match self.text(&text, tally) {
            Cow::Owned(changed) => Sanitized(changed),
            Cow::Borrowed(same) if std::ptr::eq(same, text.as_ref()) => Sanitized(text.into_owned()),
            // The notice in place of a text that kept changing.
            Cow::Borrowed(notice) => Sanitized(notice.to_owned()),
        }
    }

    /// Sanitizes a text for one line: [`Sanitizer::line`] with types.
    pub fn sanitize_line<'t>(&self, raw: impl Into<Raw<'t>>) -> Sanitized {
        let Raw(text) = raw.into();
        Sanitized(self.line(&text, &mut FamilyCounts::default()).into_owned())
    }

    /// Sanitizes JSON and keeps its shape: [`Sanitizer::json`] with types. `None` if it is invalid or over a
    /// limit.
    pub fn sanitize_json<'t>(&self, raw: impl Into<Raw<'t>>, tally: &mut FamilyCounts) -> Option<Sanitized> {
        let Raw(text) = raw.into();
        self.json(&text, tally).map(|json| Sanitized(json.into_owned()))
    }
}

#[cfg(test)]
mod tests;
