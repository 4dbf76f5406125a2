//! JSON as editors write it: with comments and trailing commas.

use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;
use crate::input::{InputError, InputSource};

/// The largest file to read. Claude Code stores much else in the same file; this is ten times the largest one
/// seen.
const MAX_BYTES: u64 = 16 << 20;

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Value, Failure> {
    let name = path.display();
    if path.is_dir() {
        return Err(Failure::usage(format!("{name} is a directory: name the editor's file in it")));
    }
    let bytes = InputSource::File(path).read(MAX_BYTES).map_err(|error| {
        Failure::usage(match error {
            InputError::Open { name, error } | InputError::Read { name, error } => {
                format!("cannot read {name}: {error}; name the editor's file")
            }
            InputError::TooLarge { name } => format!(
                "{name} has more than {MAX_BYTES} bytes: name the file in which the editor lists MCP servers"
            ),
        })
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!(
            "{name} is not UTF-8 from byte {}: save it as UTF-8",
            error.utf8_error().valid_up_to()
        ))
    })?;
    parse(&text).map_err(|error| {
        Failure::usage(format!(
            "{name}, line {}, column {}: {error}; correct it there",
            error.line(),
            error.column()
        ))
    })
}

/// Parses a text. Lines and columns of errors refer to the original text.
pub(super) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&plain(text.strip_prefix('\u{feff}').unwrap_or(text)))
}

/// Replaces comments and trailing commas by blanks, which keeps all positions.
fn plain(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        match rest {
            [b'"', ..] => {
                comma = None;
                at += string_len(rest);
            }
            [b'/', b'/', ..] => {
                let len = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                blank(&mut bytes[at..at + len]);
                at += len;
            }
            [b'/', b'*', ..] => {
                let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
                // An unclosed comment stays, and the parser reports it.
                let Some(end) = end else { return into_text(bytes) };
                blank(&mut bytes[at..at + end + 4]);
                at += end + 4;
            }
            [b',', ..] => {
                comma = Some(at);
                at += 1;
            }
            [b'}' | b']', ..] => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
                at += 1;
            }
            [b, ..] => {
                if !b.is_ascii_whitespace() {
                    comma = None;
                }
                at += 1;
            }
            [] => break,
        }
    }
    into_text(bytes)
}

fn into_text(bytes: Vec<u8>) -> String {
    // Only whole characters were replaced by blanks, so this is still valid UTF-8.
    String::from_utf8(bytes).unwrap_or_default()
}

/// The length of a string including its quotes.
fn string_len(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_last_commas_are_read_over() {
        let text =
            "\u{feff}{\n  // one\n  \"a\": [1, 2,], /* two\n ünd */ \"b\": \"// no /* comment */ ,}\",\n}";
        assert_eq!(parse(text).unwrap(), json!({ "a": [1, 2], "b": "// no /* comment */ ,}" }));
        assert_eq!(parse(r#"{"a": "\\", "b": "\"//"}"#).unwrap(), json!({ "a": "\\", "b": "\"//" }));
    }

    #[test]
    fn an_error_is_where_it_is() {
        let error = parse("{\n  // a comment\n  \"a\": 1,\n  \"b\": oops\n}").unwrap_err();
        assert_eq!((error.line(), error.column()), (4, 8));
        for bad in ["", "{", "{\"a\": /* open", "{,}x", "[1,,2]", "\"open", "{\"a\":1}}", "\"\\"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
