//! Filters the actions that this client offers.
//!
//! `talon mcp` validates patterns with the configuration's own type (`host.peers`) before it starts this
//! program, which must not depend on the supervisor's crates. So this is a second parser of the same syntax,
//! and `tests/fixtures/patterns.json` tests both.

use std::str::FromStr;

/// The longest name of a plugin or an action.
const MAX_NAME_LEN: usize = 64;

/// How much of an invalid pattern its error shows: more than the longest valid one has of either name.
const MAX_SHOWN_CHARS: usize = 80;

/// The supervisor's own action that returns the rest of an answer over its limit.
const READ_MORE: (&str, &str) = ("talon", "read_more");

/// `plugin`, `plugin__action`, `plugin__prefix*`, `prefix*` or `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    plugin: NamePattern,
    action: Option<NamePattern>,
}

/// A name, or a prefix of one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamePattern {
    text: String,
    begins: bool,
}

/// A text that is no pattern; holds its beginning.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} names no actions: write plugin, plugin__action or plugin__prefix*")]
pub(crate) struct PatternError(String);

impl NamePattern {
    fn read(text: &str, good: impl Fn(u8) -> bool) -> Option<Self> {
        let begin = text.strip_suffix('*');
        let name = begin.unwrap_or(text);
        let whole = !text.is_empty() && name.len() <= MAX_NAME_LEN && name.bytes().all(good);
        whole.then(|| Self { text: name.to_owned(), begins: begin.is_some() })
    }

    fn matches(&self, name: &str) -> bool {
        if self.begins { name.starts_with(&self.text) } else { name == self.text }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        read(text).ok_or_else(|| PatternError(text.chars().take(MAX_SHOWN_CHARS).collect()))
    }
}

fn read(text: &str) -> Option<Pattern> {
    let (plugin, action) = match text.split_once("__") {
        Some((plugin, action)) => (plugin, Some(action)),
        None => (text, None),
    };
    let plugin = NamePattern::read(plugin, |b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        .filter(|part| !part.text.starts_with('-'))?;
    let action = match action {
        None => None,
        // In `db-*__query` it would be unclear where the plugin's name ends.
        Some(_) if plugin.begins => return None,
        Some(action) => {
            Some(NamePattern::read(action, |b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')?)
        }
    };
    Some(Pattern { plugin, action })
}

impl Pattern {
    pub(crate) fn matches(&self, plugin: &str, action: &str) -> bool {
        self.plugin.matches(plugin) && self.action.as_ref().is_none_or(|part| part.matches(action))
    }
}

/// Selects a subset of what the supervisor lets this client see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    allow: Vec<Pattern>,
    deny: Vec<Pattern>,
}

impl Filter {
    /// Without --allow patterns everything is offered; --deny overrides. `read_more` is always allowed along
    /// with other actions, as under `host.peers`: it only reads the client's own answers.
    pub(crate) fn new(allow: Vec<Pattern>, deny: Vec<Pattern>) -> Self {
        Self { allow, deny }
    }

    pub(crate) fn offers(&self, plugin: &str, action: &str) -> bool {
        let named = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(plugin, action));
        let own = (plugin, action) == READ_MORE;
        (self.allow.is_empty() || own || named(&self.allow)) && !named(&self.deny)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The test cases shared with the configuration's parser.
    const TABLE: &str = include_str!("../../../tests/fixtures/patterns.json");

    #[test]
    fn patterns_are_those_of_the_configuration() {
        let table: Value = serde_json::from_str(TABLE).unwrap();
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        for good in table["good"].as_array().unwrap() {
            let text = good["pattern"].as_str().unwrap();
            let pattern: Pattern = text.parse().unwrap();
            for (key, expected) in [("lets", true), ("not", false)] {
                for name in texts(&good[key]) {
                    let (plugin, action) = name.split_once("__").unwrap();
                    assert_eq!(pattern.matches(plugin, action), expected, "{text} {name}");
                }
            }
        }
        for bad in texts(&table["bad"]) {
            assert!(bad.parse::<Pattern>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_denied_is_not_offered_whatever_allows_it() {
        let patterns = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let filter = Filter::new(patterns(&["git", "fs__read_*"]), patterns(&["git__push"]));
        for (plugin, action, offered) in [
            ("git", "status", true),
            ("git", "push", false),
            ("fs", "read_file", true),
            ("fs", "write_file", false),
            ("talon", "read_more", true),
        ] {
            assert_eq!(filter.offers(plugin, action), offered, "{plugin}__{action}");
        }
        let without = Filter::new(patterns(&["git"]), patterns(&["talon"]));
        assert!(!without.offers("talon", "read_more"));
        assert!(Filter::default().offers("any", "thing"));
    }
}
