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

use talon_agent_settings::{
    CompiledPattern, ConfirmKeys, ConfirmMode, ConfirmPatternFile, ConfirmRule, LimitKeys, SettingsBundle,
    argument_texts, confirm_pattern, covers,
};

use super::patterns;
use crate::driver::CallToConfirm;

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
    /// An operator's expression or file of them cannot be used, so it is unknown whether it would match. The
    /// key and what it says.
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
                write!(f, "{which} cannot be used; correct it in the configuration")
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

impl<'c> PolicyInput<'c> {
    /// What the policy looks at of a call.
    pub(super) fn of(call: &CallToConfirm<'c>) -> Self {
        let CallToConfirm { plugin, action, args, read_only, destructive, .. } = *call;
        Self { plugin, action, args, read_only, destructive }
    }
}

/// `agent.confirm`, with the file of patterns that it names.
#[derive(Debug, Clone, Default)]
pub struct ConfirmSettings {
    /// The operator's keys.
    pub keys: ConfirmKeys,
    /// What the supervisor read in [`ConfirmKeys::pattern_file`].
    pub file: Option<ConfirmPatternFile>,
    /// How much may wait.
    pub limits: LimitKeys,
}

impl ConfirmSettings {
    /// Those of a bundle.
    pub(crate) fn of(bundle: &SettingsBundle) -> Self {
        let agent = &bundle.settings.agent;
        Self { keys: agent.confirm.clone(), file: bundle.confirm_patterns.clone(), limits: agent.limits }
    }
}

impl From<&ConfirmKeys> for ConfirmSettings {
    fn from(keys: &ConfirmKeys) -> Self {
        Self { keys: keys.clone(), file: None, limits: LimitKeys::default() }
    }
}

/// `agent.confirm`, with its expressions compiled.
#[derive(Debug, Clone)]
pub struct Policy {
    default: ConfirmMode,
    rules: Vec<ConfirmRule>,
    patterns: Vec<CompiledPattern>,
    unreadable: Option<String>,
}

impl Policy {
    /// Creates the policy from the configuration. If an expression does not compile, every call to which
    /// patterns apply needs approval: the configuration check rejects such an expression, and if one gets
    /// past it, nothing is let through.
    #[must_use]
    pub fn new(confirm: &ConfirmSettings) -> Self {
        let ConfirmSettings { keys, file, limits: _ } = confirm;
        let (mut patterns, mut unreadable) = (Vec::new(), None);
        for expression in &keys.patterns {
            match confirm_pattern(expression) {
                Ok(pattern) => patterns.push(CompiledPattern::from_expression(pattern)),
                Err(_) => {
                    let shown: String = expression.chars().take(100).collect();
                    unreadable.get_or_insert_with(|| format!("agent.confirm.patterns: {shown}"));
                }
            }
        }
        if let Some(path) = &keys.pattern_file {
            match file.as_ref().map(ConfirmPatternFile::compile) {
                Some(Ok(of_file)) => patterns.extend(of_file),
                Some(Err(_)) | None => {
                    let shown = path.display();
                    unreadable.get_or_insert_with(|| format!("agent.confirm.pattern_file: {shown}"));
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
        let texts = argument_texts(args.values().map(String::as_str));
        let built_in = texts.iter().find_map(|text| patterns::match_built_in(text));
        if let Some(name) = built_in {
            return Some(ConfirmReason::Pattern(name.to_owned()));
        }
        let own = self.patterns.iter().find(|pattern| texts.iter().any(|text| pattern.finds(text)));
        own.map(|pattern| ConfirmReason::Pattern(pattern.name().to_owned()))
    }
}
