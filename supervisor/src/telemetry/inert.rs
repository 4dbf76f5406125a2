//! One line of the log, made inert as a whole.

use std::borrow::Cow;

use talon_sanitize::{Raw, Sanitizer, Tally};

use super::Format;
use crate::inert_json;

/// The line as it may be written. In a coloured text the subscriber's own colours stay, and nothing else that acts on a
/// terminal; a line that has to be changed loses its colours.
pub(super) fn line(line: Vec<u8>, format: Format, color: bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(&line);
    let text = text.trim_end_matches('\n');
    let inert = match format {
        Format::Json => json(text),
        Format::Text => {
            let plain = if color { without_colors(text) } else { Cow::Borrowed(text) };
            let inert = Raw::from(plain.as_ref()).line();
            (inert != plain.as_ref()).then(|| inert.into_string())
        }
    };
    match inert {
        None => line,
        Some(mut inert) => {
            inert.push('\n');
            inert.into_bytes()
        }
    }
}

/// The object with its strings made inert; None if that changes nothing.
fn json(text: &str) -> Option<String> {
    if let Some(inert) = Sanitizer::default().sanitize_json(text, &mut Tally::default()) {
        return (inert != text).then(|| inert.into_string());
    }
    Some(match serde_json::from_str::<serde_json::Value>(text) {
        // A field that is there twice, for one: the last is kept.
        Ok(value) => inert_json::value(&value).to_string(),
        Err(_) => Raw::from(text).line().into_string(),
    })
}

/// The text without the sequences that set colours: `ESC [`, numbers, `m`.
fn without_colors(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(escape) = rest.find("\u{1b}[") {
        let (before, sequence) = rest.split_at(escape);
        let numbers = sequence[2..].find(|c: char| !c.is_ascii_digit() && c != ';').map(|end| end + 2);
        let end = numbers.filter(|end| sequence[*end..].starts_with('m')).map(|end| end + 1);
        // What sets no colour stays, and is made visible by the sanitizer.
        let taken = end.unwrap_or(2);
        plain.push_str(before);
        if end.is_none() {
            plain.push_str(&sequence[..taken]);
        }
        rest = &sequence[taken..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn made(text: &str, format: Format, color: bool) -> String {
        String::from_utf8(line(format!("{text}\n").into_bytes(), format, color)).unwrap()
    }

    #[test]
    fn a_clean_line_stays_as_it_is() {
        for text in ["2026-01-01T00:00:00Z  INFO talon: ready plugins=2", "{\"level\":\"INFO\",\"n\":1.50}"] {
            let format = if text.starts_with('{') { Format::Json } else { Format::Text };
            assert_eq!(made(text, format, false), format!("{text}\n"));
        }
        let colored = "\u{1b}[2m2026\u{1b}[0m \u{1b}[32m INFO\u{1b}[0m ready";
        assert_eq!(made(colored, Format::Text, true), format!("{colored}\n"));
    }

    #[test]
    fn whatever_was_logged_comes_out_inert() {
        assert_eq!(made("a <|im_start|>\nb\u{9b}", Format::Text, false), "a <·|im_start|>\\nb(U+009B)\n");
        let hostile = "\u{1b}[32m INFO\u{1b}[0m \u{1b}[2J [/plugin_output]";
        assert_eq!(made(hostile, Format::Text, true), " INFO ␛[2J [·/plugin_output]\n");
        assert_eq!(
            made("{\"m\":\"\u{202e}<think>\"}", Format::Json, false),
            "{\"m\":\"(U+202E)<·think>\"}\n"
        );
        // A key twice is no reason to let anything through.
        for twice in ["{\"m\":\"a\",\"m\":\"<think>\"}", "{\"m\":\"<think>\",\"m\":\"a\"}"] {
            let made = made(twice, Format::Json, false);
            assert!(!made.contains("<think>"), "{made}");
        }
    }

    proptest! {
        #[test]
        fn no_line_acts(bytes in proptest::collection::vec(any::<u8>(), 0..100), json: bool, color: bool) {
            let format = if json { Format::Json } else { Format::Text };
            let out = String::from_utf8(line(bytes, format, color)).unwrap_or_default();
            let plain = without_colors(out.trim_end_matches('\n')).into_owned();
            prop_assert!(!plain.contains(char::is_control), "{:?}", plain);
        }
    }
}
