//! Writes YAML, in one fixed form for each value.
//!
//! The files are compared byte by byte, kept in version control, and written record by record, so the form is
//! defined here and does not change with the release of a library. It is a small subset of YAML: block
//! collections, plain words, literal blocks for text of several lines, and double quotes with escapes for
//! everything that a reader of YAML 1.1 or 1.2 could take for something else.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A longer key is written with `? `: YAML readers search for the colon in the first 1,024 characters only.
const MAX_SIMPLE_KEY: usize = 1000;
/// The length of the lines of base64.
const BASE64_LINE: usize = 76;

/// A growing YAML text.
#[derive(Debug, Default)]
pub struct YamlWriter {
    out: String,
    indent: usize,
    /// The next line begins an item of a list.
    dash: bool,
}

impl YamlWriter {
    /// Returns what was written since the last call.
    #[must_use]
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// A key whose value is the lines that `inner` writes.
    pub fn map(&mut self, key: &str, inner: impl FnOnce(&mut Self)) {
        self.key(key);
        self.out.push('\n');
        self.indent += 2;
        inner(self);
        self.indent -= 2;
    }

    /// An item of a list, whose keys `inner` writes: at least one.
    pub fn item(&mut self, inner: impl FnOnce(&mut Self)) {
        self.indent += 2;
        self.dash = true;
        inner(self);
        self.indent -= 2;
    }

    /// An item of a list below the key that was just written.
    pub fn nested_item(&mut self, inner: impl FnOnce(&mut Self)) {
        self.indent += 2;
        self.item(inner);
        self.indent -= 2;
    }

    /// A key and a text.
    pub fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        self.scalar(text);
    }

    /// A key and a value without quotes: a number, a time, an id.
    pub fn bare(&mut self, key: &str, value: impl std::fmt::Display) {
        self.key(key);
        self.write(format_args!(" {value}\n"));
    }

    /// A key and bytes: as text, if they are text.
    pub fn bytes(&mut self, key: &str, bytes: &[u8]) {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return self.text(key, text);
        }
        self.key(key);
        self.out.push_str(" !!binary |\n");
        let encoded = STANDARD.encode(bytes);
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (line, more) = rest.split_at(rest.len().min(BASE64_LINE));
            self.spaces(self.indent + 2);
            self.out.push_str(line);
            self.out.push('\n');
            rest = more;
        }
    }

    /// A key and any JSON value.
    pub fn json(&mut self, key: &str, value: &Value) {
        self.key(key);
        self.value(value);
    }

    /// A key without its value.
    pub fn key(&mut self, key: &str) {
        self.line();
        let written = if is_plain(key) { key.to_owned() } else { quote(key) };
        if written.chars().count() > MAX_SIMPLE_KEY {
            self.write(format_args!("? {written}\n"));
            self.spaces(self.indent);
        } else {
            self.out.push_str(&written);
        }
        self.out.push(':');
    }

    /// Ends a line that has only a key.
    pub fn raw(&mut self, rest: &str) {
        self.out.push_str(rest);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.scalar(text),
            Value::Array(items) if !items.is_empty() => {
                self.out.push('\n');
                for item in items {
                    self.list_item(item);
                }
            }
            Value::Object(fields) if !fields.is_empty() => {
                self.out.push('\n');
                self.indent += 2;
                fields.iter().for_each(|(key, value)| self.json(key, value));
                self.indent -= 2;
            }
            Value::Array(_) => self.out.push_str(" []\n"),
            Value::Object(_) => self.out.push_str(" {}\n"),
            Value::Null | Value::Bool(_) | Value::Number(_) => self.write(format_args!(" {value}\n")),
        }
    }

    fn list_item(&mut self, item: &Value) {
        match item {
            Value::Object(fields) if !fields.is_empty() => {
                self.nested_item(|yaml| fields.iter().for_each(|(key, value)| yaml.json(key, value)));
            }
            _ => {
                self.indent += 2;
                self.line();
                self.out.push('-');
                self.value(item);
                self.indent -= 2;
            }
        }
    }

    fn scalar(&mut self, text: &str) {
        if is_plain(text) {
            return self.write(format_args!(" {text}\n"));
        }
        if !is_literal(text) {
            return self.write(format_args!(" {}\n", quote(text)));
        }
        self.out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            if !line.is_empty() {
                self.spaces(self.indent + 2);
                self.out.push_str(line);
            }
            self.out.push('\n');
        }
    }

    fn line(&mut self) {
        if std::mem::take(&mut self.dash) {
            self.spaces(self.indent - 2);
            self.out.push_str("- ");
        } else {
            self.spaces(self.indent);
        }
    }

    fn spaces(&mut self, count: usize) {
        self.out.extend(std::iter::repeat_n(' ', count));
    }

    fn write(&mut self, what: std::fmt::Arguments<'_>) {
        // Writing to a String does not fail.
        let _written = self.out.write_fmt(what);
    }
}

/// Words that some YAML reader takes for a boolean, for null or for a number.
const RESERVED_WORDS: &[&str] = &["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"];

/// Whether a text needs no quotes. Only text that looks like words does not: it begins with a letter, so it
/// is no number, date or YAML indicator.
fn is_plain(text: &str) -> bool {
    let inner = |c: char| {
        c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/' | '@' | '+' | ',' | '(' | ')')
    };
    text.chars().next().is_some_and(char::is_alphabetic)
        && text.chars().all(inner)
        && !text.ends_with(' ')
        && !RESERVED_WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Whether every reader reads the same text from a literal block: several lines, none of them unusual.
fn is_literal(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && !text.ends_with("\n\n")
        && text.chars().all(|c| c == '\n' || c == '\t' || is_printable(c))
        && text.split('\n').all(|line| line.is_empty() || !line.trim().is_empty())
}

/// Whether a character needs no escape in a file.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
        && !matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
}

fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                // Writing to a String does not fail.
                let _written = match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push('"');
    out
}
