//! The arguments as one JSON object.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// How much of a name or of the parser's complaint an error repeats, in bytes.
const MAX_SHOWN_BYTES: usize = 200;
/// The same of an argument's name.
const MAX_NAME_BYTES: usize = 64;

/// Why arguments are not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// It is no JSON object, too deep, or has a key twice.
    #[error("arguments_json is not usable: {0}; send one JSON object, with each key once")]
    Json(String),
    /// The texts and the JSON are not the same arguments.
    #[error(
        "args and arguments_json are different calls (argument {0:?}): send one of the two, or both by the rule of \
         docs/protocol.md"
    )]
    Disagree(String),
}

/// Arguments as JSON, each under its name. Values are as they were written, without spaces between tokens:
/// digits of numbers are never changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments(BTreeMap<String, String>);

impl Arguments {
    /// Parses one JSON object.
    ///
    /// # Errors
    /// [`ArgumentsError::Json`]: it is no JSON object, nests deeper than [`crate::MAX_DEPTH`], has a key twice at
    /// any level, or a number that is beyond what a 64-bit float holds (`1e999`).
    pub fn parse(json: &str) -> Result<Self, ArgumentsError> {
        let unusable =
            |why: &dyn fmt::Display| ArgumentsError::Json(shorten(&why.to_string(), MAX_SHOWN_BYTES));
        talon_strict_json::check(json).map_err(|error| unusable(&error))?;
        if !json.trim_start().starts_with('{') {
            return Err(unusable(&"it is not an object"));
        }
        let mut all = BTreeMap::new();
        for (name, value) in Members::of(json) {
            let name: String = serde_json::from_str(name).map_err(|error| unusable(&error))?;
            all.insert(name, compact(value));
        }
        Ok(Self(all))
    }

    /// The arguments of parsed JSON. Numbers are as `serde_json` holds them: large ones may have lost digits.
    #[must_use]
    pub fn of(arguments: &Map<String, Value>) -> Self {
        Self(arguments.iter().map(|(name, value)| (name.clone(), value.to_string())).collect())
    }

    /// The arguments as texts: a string is its own text, `null` is left out, anything else is its JSON.
    #[must_use]
    pub fn texts(&self) -> BTreeMap<String, String> {
        self.0.iter().filter_map(|(name, json)| Some((name.clone(), text_of(json)?.into_owned()))).collect()
    }

    /// Whether these texts are the same arguments: those of [`Self::texts`].
    ///
    /// # Errors
    /// [`ArgumentsError::Disagree`], with the first argument that differs.
    pub fn agree(&self, texts: &BTreeMap<String, String>) -> Result<(), ArgumentsError> {
        let disagree = |name: &str| Err(ArgumentsError::Disagree(shorten(name, MAX_NAME_BYTES)));
        for (name, json) in &self.0 {
            if texts.get(name).map(String::as_str) != text_of(json).as_deref() {
                return disagree(name);
            }
        }
        match texts.keys().find(|name| !self.0.contains_key(*name)) {
            Some(more) => disagree(more),
            None => Ok(()),
        }
    }

    /// One JSON object, with its keys sorted and no spaces.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = String::with_capacity(2 + self.bytes() + 4 * self.0.len());
        text.push('{');
        for (index, (name, json)) in self.0.iter().enumerate() {
            if index > 0 {
                text.push(',');
            }
            text.push_str(&quoted(name));
            text.push(':');
            text.push_str(json);
        }
        text.push('}');
        text
    }

    /// The bytes of all names and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(name, json)| name.len() + json.len()).sum()
    }

    /// The JSON of an argument.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, json)| (name.as_str(), json.as_str()))
    }

    /// Sets an argument to a string.
    pub fn insert_string(&mut self, name: &str, text: &str) {
        self.0.insert(name.to_owned(), quoted(text));
    }

    /// Sets an argument to this JSON, which has to be valid and without spaces between tokens.
    pub fn insert_json(&mut self, name: &str, json: String) {
        self.0.insert(name.to_owned(), json);
    }

    /// Removes an argument.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }
}

/// The text of a value; `None` for `null`.
pub(crate) fn text_of(json: &str) -> Option<Cow<'_, str>> {
    match json.as_bytes().first() {
        Some(b'n') => None,
        Some(b'"') => match json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some(plain) if !plain.contains('\\') => Some(Cow::Borrowed(plain)),
            _ => serde_json::from_str(json).ok().map(Cow::Owned),
        },
        _ => Some(Cow::Borrowed(json)),
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn shorten(text: &str, max_bytes: usize) -> String {
    match text.char_indices().find(|(at, _)| *at >= max_bytes) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Valid JSON without spaces between its tokens.
pub(crate) fn compact(json: &str) -> String {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let trimmed = json.trim_matches([' ', '\t', '\n', '\r']);
    if !trimmed.as_bytes().iter().any(is_space) {
        return trimmed.to_owned();
    }
    let bytes = trimmed.as_bytes();
    let mut out = String::with_capacity(trimmed.len());
    let mut at = 0;
    while at < bytes.len() {
        if is_space(&bytes[at]) {
            at += 1;
            continue;
        }
        let end = match bytes[at] {
            b'"' => string_end(bytes, at),
            _ => bytes[at..]
                .iter()
                .position(|byte| is_space(byte) || *byte == b'"')
                .map_or(bytes.len(), |length| at + length),
        };
        out.push_str(&trimmed[at..end]);
        at = end;
    }
    out
}

/// Behind the closing quote of the string that begins here; the end if there is none.
fn string_end(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The members of an object's text, each as the texts of key and value. Anything else has none; text that is
/// no JSON yields some.
struct Members<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Members<'t> {
    fn of(text: &'t str) -> Self {
        let at = text.bytes().position(|byte| byte == b'{').map_or(text.len(), |open| open + 1);
        Self { text, at }
    }

    /// Behind a value that begins here.
    fn value_end(&self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut depth = 0_usize;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => {
                    at = string_end(bytes, at);
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => return at,
                b'}' | b']' => depth -= 1,
                b',' if depth == 0 => return at,
                _ => {}
            }
            at += 1;
        }
        bytes.len()
    }
}

impl<'t> Iterator for Members<'t> {
    type Item = (&'t str, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let open = self.at + bytes.get(self.at..)?.iter().position(|byte| matches!(byte, b'"' | b'}'))?;
        if bytes[open] == b'}' {
            self.at = bytes.len();
            return None;
        }
        let close = string_end(bytes, open);
        let colon = close + bytes.get(close..)?.iter().position(|byte| *byte == b':')?;
        let end = self.value_end(colon + 1);
        self.at = end;
        Some((self.text.get(open..close)?, self.text.get(colon + 1..end)?))
    }
}

/// The text of a member of an object; the last one, if the object has several of the name. `None` also for
/// what is no object. The text need not be valid JSON; then what is found need not be, either.
#[must_use]
pub fn member<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    if !object.trim_start().starts_with('{') {
        return None;
    }
    let key = quoted(name);
    Members::of(object).filter(|(found, _)| *found == key).last().map(|(_, value)| value.trim())
}

/// Adds a member to the text of an object that has none of this name. `json` has to be valid.
pub fn set_member(object: &mut String, name: &str, json: &str) {
    if object.pop() == Some('}') {
        if !object.ends_with('{') {
            object.push(',');
        }
        object.push_str(&quoted(name));
        object.push(':');
        object.push_str(json);
        object.push('}');
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
