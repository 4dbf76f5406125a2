//! Patterns that grant actions to a caller.
//!
//! | pattern | grants |
//! |---|---|
//! | `git` | all actions of the plugin `git` |
//! | `git__status` | that action |
//! | `fs__read_*` | the actions of `fs` whose names begin with `read_` |
//! | `db-*` | all actions of the plugins whose names begin with `db-` |
//! | `*` | everything |
//!
//! A plugin's name holds no `_`, so the first `__` always ends it. A star is allowed only at the end, so that
//! a pattern shows what it grants. `talon mcp` uses the same language; both are tested against
//! `tests/fixtures/patterns.json`.

use std::fmt;
use std::str::FromStr;

use crate::name::MAX_NAME_LEN;

/// The separator of plugin and action.
const BETWEEN: &str = "__";
/// The longest name of an action.
const MAX_ACTION_LEN: usize = 64;
/// How many characters of an invalid pattern an error repeats.
const MAX_SHOWN_CHARS: usize = 80;

/// A set of actions, given by plugin and action.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionPattern {
    plugin: NamePattern,
    /// `None`: all of them.
    action: Option<NamePattern>,
}

/// A name, or the prefix of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum NamePattern {
    Exact(String),
    Prefix(String),
}

/// Why a text is not a pattern. It ends with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The part that names plugins.
    #[error(
        "{0:?} names no plugin: write its name (`git`), with a `*` at the end (`db-*`) or an action after it (`git__status`)"
    )]
    Plugin(String),
    /// The part that names actions.
    #[error(
        "{0:?} names no action of a plugin: write `git__status`, `git__read_*`, or `git` for all of them"
    )]
    Action(String),
}

impl ActionPattern {
    /// Whether it grants this action.
    #[must_use]
    pub fn matches(&self, plugin: &str, action: &str) -> bool {
        self.plugin.matches(plugin) && self.action.as_ref().is_none_or(|part| part.matches(action))
    }

    /// Whether it may grant any action of this plugin.
    #[must_use]
    pub fn matches_plugin(&self, plugin: &str) -> bool {
        self.plugin.matches(plugin)
    }
}

impl FromStr for ActionPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let shown = || text.chars().take(MAX_SHOWN_CHARS).collect();
        let (plugin, action) = match text.split_once(BETWEEN) {
            Some((plugin, action)) => (plugin, Some(action)),
            None => (text, None),
        };
        let of_plugins = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let plugin = NamePattern::parse(plugin, MAX_NAME_LEN, of_plugins)
            .filter(|part| !part.text().starts_with('-'))
            .ok_or_else(|| PatternError::Plugin(shown()))?;
        let Some(action) = action else { return Ok(Self { plugin, action: None }) };
        // Refused: which plugins `db-*__query` means would depend on where their names end.
        let NamePattern::Exact(_) = plugin else { return Err(PatternError::Plugin(shown())) };
        let of_actions = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let action = NamePattern::parse(action, MAX_ACTION_LEN, of_actions)
            .ok_or_else(|| PatternError::Action(shown()))?;
        Ok(Self { plugin, action: Some(action) })
    }
}

impl NamePattern {
    fn parse(text: &str, max_len: usize, good: impl Fn(u8) -> bool) -> Option<Self> {
        let (name, part): (_, fn(String) -> Self) = match text.strip_suffix('*') {
            Some(start) => (start, Self::Prefix),
            None => (text, Self::Exact),
        };
        (!text.is_empty() && name.len() <= max_len && name.bytes().all(good)).then(|| part(name.to_owned()))
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(it) => it == name,
            Self::Prefix(start) => name.starts_with(start.as_str()),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Prefix(text) => text,
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Prefix(start) => write!(f, "{start}*"),
        }
    }
}

impl fmt::Display for ActionPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plugin.fmt(f)?;
        self.action.as_ref().map_or(Ok(()), |action| write!(f, "{BETWEEN}{action}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Table {
        good: Vec<Good>,
        bad: Vec<String>,
    }

    #[derive(serde::Deserialize)]
    struct Good {
        pattern: String,
        lets: Vec<String>,
        not: Vec<String>,
    }

    #[test]
    fn the_table_that_all_who_know_the_language_share() {
        let table: Table =
            serde_json::from_str(include_str!("../../../../tests/fixtures/patterns.json")).unwrap();
        assert!(table.good.len() > 5 && table.bad.len() > 10);
        for Good { pattern, lets, not } in table.good {
            let read: ActionPattern = pattern.parse().unwrap();
            assert_eq!(read.to_string(), pattern);
            let matches = |tool: &String| {
                let (plugin, action) = tool.split_once(BETWEEN).unwrap();
                (read.matches(plugin, action), read.matches_plugin(plugin))
            };
            for tool in lets {
                assert_eq!(matches(&tool), (true, true), "{pattern} grants {tool}");
            }
            for tool in not {
                assert!(!matches(&tool).0, "{pattern} does not grant {tool}");
            }
        }
        for bad in table.bad {
            let error = bad.parse::<ActionPattern>().expect_err(&bad).to_string();
            assert!(error.contains("write") && error.len() < 1000, "{error}");
        }
    }
}
