//! Whether a call asks first. Pure.
//!
//! | | asks |
//! |---|---|
//! | the first rule that names it says `always` | always, whatever it declares |
//! | the action declares `read_only` | never |
//! | the rule says `never` | never, whatever its arguments are |
//! | no rule names it, and the default says `always` | always |
//! | a pattern finds something in its arguments | yes |
//! | `destructive`: the action declares that it destroys, or does not say | yes |
//! | `destructive`: it declares that it does not | no |
//! | the default says `never`, and no rule names it | no, but for a pattern |
//!
//! A `never` that was written for all actions was not written with `rm -rf` in mind; one that names the action was.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde_json::Value;
use talon_agent_settings::{Ask, ConfirmKeys, ConfirmRule, covers};

use super::patterns;

/// Longer arguments are not looked at: the call asks. It is more than a host takes, and the time of looking stays bounded.
const MAX_LOOKED_AT_BYTES: usize = 4 * 1024 * 1024;

/// Why a call asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The operator wants it.
    Always,
    /// A pattern found something; its name, or the operator's expression.
    Pattern(String),
    /// Its action declares that it may destroy something.
    Declared,
    /// Its action declares nothing.
    Undeclared,
    /// An expression of the operator's cannot be used, so that nobody knows whether it would have found something.
    Unreadable(String),
    /// Its arguments are too long to be looked at.
    TooLong,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("always"),
            Self::Pattern(which) => write!(f, "pattern: {which}"),
            Self::Declared => f.write_str("destructive: the action says so"),
            Self::Undeclared => f.write_str("destructive: the action does not say that it is not"),
            Self::Unreadable(which) => {
                write!(f, "agent.confirm.patterns: {which} cannot be used; correct it in the configuration")
            }
            Self::TooLong => f.write_str("its arguments are too long to be looked at"),
        }
    }
}

/// A call, as policy sees it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'c> {
    /// The plugin's name in the configuration.
    pub plugin: &'c str,
    /// Which of its actions.
    pub action: &'c str,
    /// Its arguments on the wire.
    pub args: &'c BTreeMap<String, String>,
    /// What the action declares.
    pub read_only: bool,
    /// What the action declares; `None` if it does not say.
    pub destructive: Option<bool>,
}

/// `agent.confirm`, with its expressions compiled.
#[derive(Debug, Clone)]
pub struct Policy {
    default: Ask,
    rules: Vec<ConfirmRule>,
    patterns: Vec<Regex>,
    unreadable: Option<String>,
}

impl Policy {
    /// Of the configuration. An expression that cannot be used makes every call ask that patterns are looked at for: the
    /// configuration's check refuses it, and what gets past that is not to let anything through.
    #[must_use]
    pub fn new(keys: &ConfirmKeys) -> Self {
        let (mut patterns, mut unreadable) = (Vec::new(), None);
        for expression in &keys.patterns {
            match patterns::compile(expression) {
                Ok(pattern) => patterns.push(pattern),
                Err(_) => {
                    unreadable.get_or_insert_with(|| expression.chars().take(100).collect());
                }
            }
        }
        Self { default: keys.default, rules: keys.rules.clone(), patterns, unreadable }
    }

    /// What holds for an action, leaving patterns aside.
    #[must_use]
    pub fn ask(&self, plugin: &str, action: &str, read_only: bool) -> Ask {
        match self.rule(plugin, action) {
            Some(Ask::Always) => Ask::Always,
            _ if read_only => Ask::Never,
            rule => rule.unwrap_or(self.default),
        }
    }

    fn rule(&self, plugin: &str, action: &str) -> Option<Ask> {
        self.rules.iter().find(|rule| covers(&rule.tool, plugin, action)).map(|rule| rule.ask)
    }

    /// Why this call asks; `None` if it does not.
    #[must_use]
    pub fn asks(&self, call: Asked<'_>) -> Option<Why> {
        let rule = self.rule(call.plugin, call.action);
        // What a plugin says of itself is weaker than what the operator says of it.
        if rule == Some(Ask::Always) {
            return Some(Why::Always);
        }
        if call.read_only || rule == Some(Ask::Never) {
            return None;
        }
        let ask = rule.unwrap_or(self.default);
        if ask == Ask::Always {
            return Some(Why::Always);
        }
        if let Some(found) = self.found(call.args) {
            return Some(found);
        }
        match (ask, call.destructive) {
            (Ask::Never, _) | (_, Some(false)) => None,
            (_, Some(true)) => Some(Why::Declared),
            (_, None) => Some(Why::Undeclared),
        }
    }

    fn found(&self, args: &BTreeMap<String, String>) -> Option<Why> {
        if let Some(which) = &self.unreadable {
            return Some(Why::Unreadable(which.clone()));
        }
        if args.values().map(String::len).sum::<usize>() > MAX_LOOKED_AT_BYTES {
            return Some(Why::TooLong);
        }
        let texts = texts(args);
        let built_in = texts.iter().find_map(|text| patterns::built_in(text));
        if let Some(name) = built_in {
            return Some(Why::Pattern(name.to_owned()));
        }
        let own = self.patterns.iter().find(|pattern| texts.iter().any(|text| pattern.is_match(text)));
        own.map(|pattern| Why::Pattern(pattern.as_str().to_owned()))
    }
}

/// The texts that patterns are held against: each argument as it is; without what a shell takes away; the strings within its JSON
/// one behind the other, which a list of words is; and all arguments together, for a program in one and its flags in the next.
fn texts(args: &BTreeMap<String, String>) -> Vec<String> {
    let mut texts = Vec::new();
    let mut flat: Vec<String> = Vec::new();
    for value in args.values() {
        let words = words(value).unwrap_or_else(|| value.clone());
        let mut all = vec![value.clone(), words.clone(), unquoted(value), unquoted(&words)];
        all.sort_unstable();
        all.dedup();
        texts.append(&mut all);
        flat.push(words);
    }
    if flat.len() > 1 {
        // Arguments have no order; `command` and `args` are one in one order, `program` and `flags` in the other.
        texts.push(unquoted(&flat.join(" ")));
        flat.reverse();
        texts.push(unquoted(&flat.join(" ")));
    }
    texts
}

/// All strings in a JSON list or object, one behind the other; `None` for what is neither.
fn words(value: &str) -> Option<String> {
    /// The parser bounds how deep this goes.
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

/// Without quotes and escapes, and with lines that were broken put together: `"rm" -r\f` is `rm -rf` to a shell.
fn unquoted(text: &str) -> String {
    text.replace("\\\n", " ").replace("${IFS}", " ").replace("$IFS", " ").replace(['"', '\'', '\\'], "")
}
