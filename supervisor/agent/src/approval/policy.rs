//! Whether a call needs approval. No side effects.
//!
//! | | needs approval |
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
//! The default `never` leaves the patterns on, since it was not written with `rm -rf` in mind. A rule that
//! names the action switches them off.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde_json::Value;
use talon_agent_settings::{ConfirmKeys, ConfirmMode, ConfirmRule, confirm_pattern, covers};

use super::patterns;

/// Calls with longer arguments always need approval, so that matching time is bounded. The host accepts less
/// than this.
const MAX_INSPECTED_BYTES: usize = 4 * 1024 * 1024;

/// Why a call needs approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfirmReason {
    /// An operator's rule says so.
    Always,
    /// A pattern matched; its name, or the operator's expression.
    Pattern(String),
    /// Its action declares that it may destroy something.
    Declared,
    /// Its action declares nothing.
    Undeclared,
    /// An operator's expression does not compile, so it is unknown whether it would match.
    Unreadable(String),
    /// Its arguments are too long to be matched.
    TooLong,
}

impl fmt::Display for ConfirmReason {
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

/// A call, as the policy sees it.
#[derive(Debug, Clone, Copy)]
pub struct PolicyInput<'c> {
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
    default: ConfirmMode,
    rules: Vec<ConfirmRule>,
    patterns: Vec<Regex>,
    unreadable: Option<String>,
}

impl Policy {
    /// Creates the policy from the configuration. If an expression does not compile, every call to which
    /// patterns apply needs approval: the configuration check rejects such an expression, and if one gets
    /// past it, nothing is let through.
    #[must_use]
    pub fn new(keys: &ConfirmKeys) -> Self {
        let (mut patterns, mut unreadable) = (Vec::new(), None);
        for expression in &keys.patterns {
            match confirm_pattern(expression) {
                Ok(pattern) => patterns.push(pattern),
                Err(_) => {
                    unreadable.get_or_insert_with(|| expression.chars().take(100).collect());
                }
            }
        }
        Self { default: keys.default, rules: keys.rules.clone(), patterns, unreadable }
    }

    /// Returns when an action needs approval, without looking at patterns.
    #[must_use]
    pub fn confirm_mode(&self, plugin: &str, action: &str, read_only: bool) -> ConfirmMode {
        match self.rule(plugin, action) {
            Some(ConfirmMode::Always) => ConfirmMode::Always,
            _ if read_only => ConfirmMode::Never,
            rule => rule.unwrap_or(self.default),
        }
    }

    fn rule(&self, plugin: &str, action: &str) -> Option<ConfirmMode> {
        self.rules.iter().find(|rule| covers(&rule.tool, plugin, action)).map(|rule| rule.ask)
    }

    /// Returns why this call needs approval; `None` if it does not.
    #[must_use]
    pub fn confirm_reason(&self, call: PolicyInput<'_>) -> Option<ConfirmReason> {
        let rule = self.rule(call.plugin, call.action);
        // The operator's rule outranks the plugin's declaration.
        if rule == Some(ConfirmMode::Always) {
            return Some(ConfirmReason::Always);
        }
        if call.read_only || rule == Some(ConfirmMode::Never) {
            return None;
        }
        let ask = rule.unwrap_or(self.default);
        if ask == ConfirmMode::Always {
            return Some(ConfirmReason::Always);
        }
        if let Some(found) = self.match_patterns(call.args) {
            return Some(found);
        }
        match (ask, call.destructive) {
            (ConfirmMode::Never, _) | (_, Some(false)) => None,
            (_, Some(true)) => Some(ConfirmReason::Declared),
            (_, None) => Some(ConfirmReason::Undeclared),
        }
    }

    fn match_patterns(&self, args: &BTreeMap<String, String>) -> Option<ConfirmReason> {
        if let Some(which) = &self.unreadable {
            return Some(ConfirmReason::Unreadable(which.clone()));
        }
        if args.values().map(String::len).sum::<usize>() > MAX_INSPECTED_BYTES {
            return Some(ConfirmReason::TooLong);
        }
        let texts = texts(args);
        let built_in = texts.iter().find_map(|text| patterns::match_built_in(text));
        if let Some(name) = built_in {
            return Some(ConfirmReason::Pattern(name.to_owned()));
        }
        let own = self.patterns.iter().find(|pattern| texts.iter().any(|text| pattern.is_match(text)));
        own.map(|pattern| ConfirmReason::Pattern(pattern.as_str().to_owned()))
    }
}

/// The texts that patterns are matched against: each argument; the argument without shell quoting; the
/// strings inside its JSON, joined, since that may be an argument list; and all arguments joined, for a
/// program in one and its flags in the next.
fn texts(args: &BTreeMap<String, String>) -> Vec<String> {
    let mut texts = Vec::new();
    let mut flat: Vec<String> = Vec::new();
    for value in args.values() {
        let words = json_strings(value).unwrap_or_else(|| value.clone());
        let mut all = vec![value.clone(), words.clone(), unquote(value), unquote(&words)];
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
