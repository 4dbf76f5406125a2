//! Highlights code, a line at a time.

use anstyle::{AnsiColor, Style};

use super::language::{Language, language_of};
use super::span::Span;

const KEYWORD: Style = AnsiColor::Magenta.on_default();
const STRING: Style = AnsiColor::Green.on_default();
const NUMBER: Style = AnsiColor::Cyan.on_default();
const COMMENT: Style = Style::new().dimmed();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// The characters of a line break.
const LINE_BREAK: [char; 2] = ['\r', '\n'];

/// The code of one block.
#[derive(Debug, Default)]
pub(super) struct CodeHighlighter {
    kind: Kind,
    /// What ends a comment or a string that began in an earlier line, and its style.
    open: Option<(&'static str, Style)>,
}

#[derive(Debug, Default, Clone, Copy)]
enum Kind {
    /// Not known: shown as it is.
    #[default]
    Plain,
    Diff,
    Of(&'static Language),
}

impl CodeHighlighter {
    /// For the language that the block names.
    pub(super) fn new(name: &str) -> Self {
        let kind = match name {
            "diff" | "patch" => Kind::Diff,
            name => language_of(name).map_or(Kind::Plain, Kind::Of),
        };
        Self { kind, open: None }
    }

    /// Adds the spans of one line.
    pub(super) fn line(&mut self, line: &str, spans: &mut Vec<Span>) {
        match self.kind {
            Kind::Plain => spans.push(Span::plain(line)),
            Kind::Diff => {
                let style = match line.as_bytes().first() {
                    Some(b'+') => Some(ADDED),
                    Some(b'-') => Some(REMOVED),
                    Some(b'@') => Some(NUMBER),
                    _ => None,
                };
                spans.push(Span::new(line, style));
            }
            Kind::Of(language) => self.tokens(line, language, spans),
        }
    }

    fn tokens(&mut self, line: &str, language: &'static Language, spans: &mut Vec<Span>) {
        let mut rest = line;
        let mut plain_from = line;
        let mut before = None;
        while !rest.is_empty() {
            let (length, style) = match self.open.take() {
                Some((end, style)) => (self.until(rest, 0, end, style, true), Some(style)),
                None => self.token(rest, before, language),
            };
            if style.is_some() {
                let plain = &plain_from[..plain_from.len() - rest.len()];
                spans.extend((!plain.is_empty()).then(|| Span::plain(plain)));
                spans.push(Span::new(&rest[..length], style));
                plain_from = &rest[length..];
            }
            before = rest[..length].chars().next_back();
            rest = &rest[length..];
        }
        spans.extend((!plain_from.is_empty()).then(|| Span::plain(plain_from)));
    }

    /// The length and style of what the rest begins with.
    fn token(&mut self, rest: &str, before: Option<char>, language: &Language) -> (usize, Option<Style>) {
        if let Some(mark) = language.line_comments.iter().find(|mark| rest.starts_with(**mark))
            // In shells and YAML a `#` inside of a word is none.
            && (!mark.starts_with('#') || before.is_none_or(char::is_whitespace))
        {
            return (rest.trim_end_matches(LINE_BREAK).len(), Some(COMMENT));
        }
        if let Some((begin, end)) = language.block_comment.filter(|(begin, _)| rest.starts_with(begin)) {
            return (self.until(rest, begin.len(), end, COMMENT, true), Some(COMMENT));
        }
        if let Some(quote) = language.quotes.iter().find(|quote| rest.starts_with(quote.mark)) {
            return (
                self.until(rest, quote.mark.len(), quote.mark, STRING, quote.is_multiline),
                Some(STRING),
            );
        }
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        match rest[..word].chars().next() {
            None => (rest.chars().next().map_or(1, char::len_utf8), None),
            Some(first) if first.is_ascii_digit() => (word, Some(NUMBER)),
            Some(_) => {
                let is_keyword = |keyword: &&str| match language.ignores_case {
                    true => keyword.eq_ignore_ascii_case(&rest[..word]),
                    false => **keyword == rest[..word],
                };
                (word, language.keywords.iter().any(is_keyword).then_some(KEYWORD))
            }
        }
    }

    /// The length up to `end`, which is looked for from `from` on; one that is not in this line may stay open.
    fn until(
        &mut self,
        rest: &str,
        from: usize,
        end: &'static str,
        style: Style,
        is_multiline: bool,
    ) -> usize {
        let mut at = from;
        while at < rest.len() {
            if rest[at..].starts_with(end) {
                return at + end.len();
            }
            let mut letters = rest[at..].chars();
            let first = letters.next().map_or(1, char::len_utf8);
            // A backslash takes the meaning of a quote away.
            let is_escape = style == STRING && rest[at..].starts_with('\\');
            at += first + if is_escape { letters.next().map_or(0, char::len_utf8) } else { 0 };
        }
        if is_multiline {
            self.open = Some((end, style));
            return rest.len();
        }
        rest.trim_end_matches(LINE_BREAK).len().max(from)
    }
}
