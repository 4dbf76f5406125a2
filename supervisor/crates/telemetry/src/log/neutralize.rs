//! Neutralizes a complete log line.

use std::borrow::Cow;

use talon_sanitize::{FamilyCounts, Raw, Sanitizer, sanitized_json};

/// Neutralizes a line of text. In coloured text the subscriber's own colours stay; everything else that
/// affects a terminal is neutralized. A line that has to be changed loses its colours.
pub(crate) fn text(line: Vec<u8>, color: bool) -> Vec<u8> {
    let text = String::from_utf8_lossy(&line);
    let text = text.trim_end_matches('\n');
    let plain = if color { without_colors(text) } else { Cow::Borrowed(text) };
    let inert = Raw::from(plain.as_ref()).line();
    if inert == plain.as_ref() {
        return line;
    }
    let mut inert = inert.into_string();
    inert.push('\n');
    inert.into_bytes()
}

/// Neutralizes the strings in a JSON object.
pub(crate) fn json(text: String) -> String {
    if let Some(inert) = Sanitizer::default().sanitize_json(&text, &mut FamilyCounts::default()) {
        return inert.into_string();
    }
    match serde_json::from_str::<serde_json::Value>(&text) {
        // Too large for the sanitizer as a whole.
        Ok(value) => sanitized_json::value(&value).to_string(),
        Err(_) => Raw::from(text.as_str()).line().into_string(),
    }
}

/// Removes the sequences that set colours: `ESC [`, numbers, `m`.
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
        // Other sequences stay, and the sanitizer makes them visible.
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

    fn made(line: &str, color: bool) -> String {
        String::from_utf8(text(format!("{line}\n").into_bytes(), color)).unwrap()
    }

    #[test]
    fn a_clean_line_stays_as_it_is() {
        let plain = "2026-01-01T00:00:00Z  INFO talon: ready plugins=2";
        assert_eq!(made(plain, false), format!("{plain}\n"));
        let colored = "\u{1b}[2m2026\u{1b}[0m \u{1b}[32m INFO\u{1b}[0m ready";
        assert_eq!(made(colored, true), format!("{colored}\n"));
        let object = "{\"level\":\"INFO\",\"n\":1.50}";
        assert_eq!(json(object.to_owned()), object);
    }

    // Promises: TRACE-7
    #[test]
    fn whatever_was_logged_comes_out_inert() {
        assert_eq!(made("a <|im_start|>\nb\u{9b}", false), "a <·|im_start|>\\nb(U+009B)\n");
        let hostile = "\u{1b}[32m INFO\u{1b}[0m \u{1b}[2J [/plugin_output]";
        assert_eq!(made(hostile, true), " INFO ␛[2J [·/plugin_output]\n");
        assert_eq!(json("{\"m\":\"\u{202e}<think>\"}".to_owned()), "{\"m\":\"(U+202E)<·think>\"}");
    }

    proptest! {
        // Promises: TRACE-7
        #[test]
        fn no_line_acts(bytes in proptest::collection::vec(any::<u8>(), 0..100), color: bool) {
            let out = String::from_utf8(text(bytes, color)).unwrap_or_default();
            let plain = without_colors(out.trim_end_matches('\n')).into_owned();
            prop_assert!(!plain.contains(char::is_control), "{:?}", plain);
        }
    }
}
