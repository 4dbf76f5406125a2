//! Emphasis, code and links in a line of text.

use anstyle::{AnsiColor, Color, Style};

use super::span::Span;

const CODE: Color = Color::Ansi(AnsiColor::Yellow);
/// A longer URL is shown as text, so that little is held back.
const MAX_URL_BYTES: usize = 2 << 10;
const SCHEMES: [&str; 2] = ["https://", "http://"];

/// The styles that are open in a line; all of them end with it.
#[derive(Debug, Default, Clone)]
pub(super) struct InlineStyles {
    heading: bool,
    bold: bool,
    italic: bool,
    /// How many backticks close the code that is open; 0: none is.
    code: usize,
    /// The last character before what is held.
    before: Option<char>,
}

/// What stands at a place of a line.
enum Token {
    /// Text of this length.
    Text(usize),
    Backticks(usize),
    Stars(usize),
    Url(usize),
    LineBreak(usize),
    /// More text is needed.
    Undecided,
}

impl InlineStyles {
    pub(super) fn of_line(heading: bool) -> Self {
        Self { heading, ..Self::default() }
    }

    /// Takes what can be shown now; returns how many bytes that is, and whether it ends the line.
    pub(super) fn take(&mut self, held: &str, is_end: bool, spans: &mut Vec<Span>) -> (usize, bool) {
        let mut at = 0;
        let mut text_from = 0;
        while at < held.len() {
            let token = self.token(&held[at..], is_end);
            let length = match token {
                Token::Undecided => break,
                Token::Text(length) => {
                    self.before = held[at..at + length].chars().next_back();
                    at += length;
                    continue;
                }
                Token::LineBreak(length)
                | Token::Backticks(length)
                | Token::Stars(length)
                | Token::Url(length) => length,
            };
            self.text(&held[text_from..at], spans);
            let token_text = &held[at..at + length];
            match token {
                Token::Backticks(length) if self.code == length => {
                    spans.push(Span::dim(token_text));
                    self.code = 0;
                }
                Token::Backticks(length) => {
                    spans.push(Span::dim(token_text));
                    self.code = length;
                }
                Token::Stars(length) => {
                    spans.push(Span::dim(token_text));
                    self.bold ^= length >= 2;
                    self.italic ^= length != 2;
                }
                Token::Url(_) => spans.push(Span::link(token_text)),
                Token::LineBreak(_) | Token::Text(_) | Token::Undecided => {
                    spans.push(Span::plain(token_text))
                }
            }
            self.before = token_text.chars().next_back();
            at += length;
            text_from = at;
            if matches!(token, Token::LineBreak(_)) {
                return (at, true);
            }
        }
        self.text(&held[text_from..at], spans);
        (at, false)
    }

    fn text(&self, text: &str, spans: &mut Vec<Span>) {
        if !text.is_empty() {
            spans.push(Span::new(text, self.style()));
        }
    }

    fn style(&self) -> Option<Style> {
        let mut style = Style::new();
        if self.bold || self.heading {
            style = style.bold();
        }
        if self.italic {
            style = style.italic();
        }
        if self.code > 0 {
            style = style.fg_color(Some(CODE));
        }
        (!style.is_plain()).then_some(style)
    }

    fn token(&self, rest: &str, is_end: bool) -> Token {
        let Some(first) = rest.chars().next() else { return Token::Undecided };
        let run = rest.len() - rest.trim_start_matches(first).len();
        let after = rest[run..].chars().next();
        match first {
            '\n' => Token::LineBreak(1),
            '\r' if rest.starts_with("\r\n") => Token::LineBreak(2),
            '`' if after.is_none() && !is_end => Token::Undecided,
            '`' if self.code == 0 || self.code == run => Token::Backticks(run),
            '`' => Token::Text(run),
            _ if self.code > 0 => Token::Text(first.len_utf8()),
            '\\' => match rest[1..].chars().next() {
                None if !is_end => Token::Undecided,
                Some('\r' | '\n') | None => Token::Text(1),
                Some(escaped) => Token::Text(1 + escaped.len_utf8()),
            },
            '*' if after.is_none() && !is_end => Token::Undecided,
            '*' if run <= 3 && self.is_emphasis(run, after) => Token::Stars(run),
            '*' => Token::Text(run),
            'h' if self.before.is_none_or(|letter| !letter.is_alphanumeric()) => url(rest, is_end),
            _ => Token::Text(first.len_utf8()),
        }
    }

    /// Whether stars open or close emphasis, and are no product or list.
    fn is_emphasis(&self, run: usize, after: Option<char>) -> bool {
        let is_open = if run == 2 { self.bold } else { self.italic };
        let is_space = |letter: Option<char>| letter.is_none_or(char::is_whitespace);
        match is_open {
            true => !is_space(self.before),
            false => !is_space(after) && !self.before.is_some_and(char::is_alphanumeric),
        }
    }
}

fn url(rest: &str, is_end: bool) -> Token {
    let Some(scheme) = SCHEMES.into_iter().find(|scheme| rest.starts_with(scheme)) else {
        let may_become = SCHEMES.into_iter().any(|scheme| scheme.starts_with(rest));
        return if may_become && !is_end { Token::Undecided } else { Token::Text(1) };
    };
    let ends =
        |c: char| c.is_whitespace() || matches!(c, ')' | ']' | '>' | '<' | '"' | '\'' | '`' | '|' | '*');
    let end = match rest.find(ends) {
        Some(end) => end,
        None if is_end => rest.len(),
        None if rest.len() > MAX_URL_BYTES => return Token::Text(scheme.len()),
        None => return Token::Undecided,
    };
    let url = rest[..end].trim_end_matches(['.', ',', ';', ':', '?', '!']);
    match url.len() {
        length if length > scheme.len() && length <= MAX_URL_BYTES => Token::Url(length),
        _ => Token::Text(scheme.len()),
    }
}
