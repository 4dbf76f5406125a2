//! The texts in which patterns look for what a call would do.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Comments of SQL, which stand for a space.
static SQL_COMMENTS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?s)/\*.*?\*/|--[^\n]*").expect("a constant that a test compiles"));

/// The texts that patterns are matched against: each argument; the argument without shell quoting; without
/// the comments of SQL; the strings inside its JSON, joined, since that may be an argument list; and all
/// arguments joined, for a program in one and its flags in the next.
#[must_use]
pub fn argument_texts<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut texts = Vec::new();
    let mut flat: Vec<String> = Vec::new();
    for value in values {
        let words = json_strings(value).unwrap_or_else(|| value.to_owned());
        let mut all = vec![value.to_owned(), words.clone(), unquote(value), unquote(&words)];
        if ["--", "/*"].iter().any(|comment| words.contains(comment)) {
            all.push(SQL_COMMENTS.replace_all(&words, " ").into_owned());
        }
        all.sort_unstable();
        all.dedup();
        texts.append(&mut all);
        flat.push(words);
    }
    if flat.len() > 1 {
        // Arguments have no order: both `command`, `args` and `program`, `flags` have to come out as one
        // command.
        texts.push(unquote(&flat.join(" ")));
        flat.reverse();
        texts.push(unquote(&flat.join(" ")));
    }
    texts
}

/// All strings in a JSON list or object, joined; `None` for anything else.
fn json_strings(value: &str) -> Option<String> {
    /// Recursion depth is bounded by the parser.
    fn gather(value: Value, into: &mut Vec<String>) {
        match value {
            Value::String(text) => into.push(text),
            Value::Array(items) => items.into_iter().for_each(|item| gather(item, into)),
            Value::Object(fields) => fields.into_iter().for_each(|(_, item)| gather(item, into)),
            _ => {}
        }
    }
    if !value.trim_start().starts_with(['[', '{']) {
        return None;
    }
    let parsed: Value = serde_json::from_str(value).ok()?;
    let mut words = Vec::new();
    gather(parsed, &mut words);
    Some(words.join(" "))
}

/// Removes quotes and escapes, and joins continued lines: a shell reads `"rm" -r\f` as `rm -rf`.
fn unquote(text: &str) -> String {
    text.replace("\\\n", " ").replace("${IFS}", " ").replace("$IFS", " ").replace(['"', '\'', '\\'], "")
}
