//! Finds the level of a line: from the JSON of a logger (hclog, tracing), or from a level word at its
//! beginning.

use serde_json::{Map, Value};
use talon_sanitize::{Raw, Sanitized};

use crate::logs::Level;

/// Classifies lines. Each stream has its own classifier, because a Go panic affects all lines after it.
#[derive(Debug, Default)]
pub(crate) struct Classifier {
    panicked: bool,
}

impl Classifier {
    /// Returns the level of a line and its sanitized text of at most `max_bytes` (plus an ellipsis).
    pub(crate) fn classify<'t>(&mut self, line: impl Into<Raw<'t>>, max_bytes: usize) -> (Level, Sanitized) {
        let line = line.into();
        let line = line.expose().trim_end();
        if line.starts_with('{')
            && let Ok(fields) = serde_json::from_str::<Map<String, Value>>(line)
        {
            let level = json_level(&fields).unwrap_or(Level::Info);
            let text = json_text(&fields).unwrap_or_else(|| line.to_owned());
            return (level, Raw::from(text).line_within(max_bytes));
        }
        if line.starts_with("panic: ") || line.starts_with("fatal error: ") {
            self.panicked = true;
        }
        let level = if self.panicked { Level::Error } else { text_level(line).unwrap_or(Level::Info) };
        (level, Raw::from(line).line_within(max_bytes))
    }
}

/// Checks hclog's key first, then those of other loggers.
fn json_level(fields: &Map<String, Value>) -> Option<Level> {
    ["@level", "level", "severity"].iter().find_map(|key| level_word(fields.get(*key)?.as_str()?))
}

/// Keys that are not fields of the message, for hclog and for other loggers.
const HCLOG: &[&str] = &["@message", "@level", "@timestamp", "@module"];
const OTHERS: &[&str] = &["message", "level", "timestamp", "time", "target"];

/// The text of a structured log line for people; `None` if it is not one. Makes no assumption about the types
/// of values: if the message is no text, the line stays as it is.
fn json_text(fields: &Map<String, Value>) -> Option<String> {
    let mut text = String::new();
    // Without a level it is just an object with a message, such as an answer.
    let other = || fields.get("level").and_then(|_| fields.get("message")).map(|message| (message, OTHERS));
    let (message, about) = fields.get("@message").map(|message| (message, HCLOG)).or_else(other)?;
    let message = message.as_str()?;
    if let Some(module) = fields.get("@module").and_then(Value::as_str) {
        text.push_str(module);
        text.push_str(": ");
    }
    text.push_str(message);
    for (key, value) in fields {
        if about.contains(&key.as_str()) {
            continue;
        }
        text.push(' ');
        text.push_str(key);
        text.push('=');
        match value {
            Value::String(s) if !s.is_empty() && !s.contains(char::is_whitespace) => text.push_str(s),
            other => text.push_str(&other.to_string()),
        }
    }
    Some(text)
}

/// `[INFO] …`, `2026-01-01T00:00:00Z [WARN] …`, `ERROR:root:…`: a level word among the first two words.
fn text_level(line: &str) -> Option<Level> {
    if line.starts_with("thread '") && line.contains("panicked at") {
        return Some(Level::Error);
    }
    line.split_whitespace().take(2).find_map(|word| {
        let word = word.split(':').next().unwrap_or_default();
        let bare = word.trim_start_matches('[').trim_end_matches(']');
        // Lower-case words are prose unless they are in brackets.
        (bare.len() < word.len() || bare.chars().all(|c| c.is_ascii_uppercase())).then(|| level_word(bare))?
    })
}

fn level_word(word: &str) -> Option<Level> {
    const WORDS: [(&str, Level); 11] = [
        ("trace", Level::Trace),
        ("debug", Level::Debug),
        ("info", Level::Info),
        ("notice", Level::Info),
        ("warn", Level::Warn),
        ("warning", Level::Warn),
        ("err", Level::Error),
        ("error", Level::Error),
        ("critical", Level::Error),
        ("fatal", Level::Error),
        ("panic", Level::Error),
    ];
    WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known)).map(|(_, level)| *level)
}
