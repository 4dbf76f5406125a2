//! One rule.

use std::collections::BTreeMap;

use regex::Regex;
use serde::{Deserialize, Serialize};
use talon_proto::agent;
use talon_store::Timestamp;
use ulid::Ulid;

use super::argument_pattern::compile;
use super::error::RuleError;
use super::limits::MAX_RULE_BYTES;
use crate::approval::policy::ConfirmReason;
use crate::approval::record::ApprovalRecord;
use crate::driver::CallToConfirm;

/// How far a rule reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleScope {
    /// In the session of the approved call.
    Session,
    /// In all sessions of its sender.
    Always,
}

/// A rule as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::approval) struct ApprovalRule {
    /// A ULID, so that ids sort by age.
    pub(super) id: String,
    pub(super) sender: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<String>,
    pub(super) plugin: String,
    pub(super) action: String,
    pub(super) arguments: BTreeMap<String, RuleArgument>,
    pub(super) created_by: String,
    pub(super) created_at: Timestamp,
    #[serde(default)]
    pub(super) uses: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) used_at: Option<Timestamp>,
}

/// What a rule says of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RuleArgument {
    /// It has this text, and this JSON if it is no string.
    Same {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        json: Option<String>,
    },
    /// Its text fits this pattern.
    Pattern(String),
}

impl ApprovalRule {
    /// The rule for calls like this one.
    pub(super) fn new(
        approved: &ApprovalRecord,
        scope: RuleScope,
        patterns: &BTreeMap<String, String>,
        by: &str,
    ) -> Result<Self, RuleError> {
        let ApprovalRecord { plugin, action, args, .. } = approved;
        if approved.why == ConfirmReason::Always.to_string() {
            return Err(RuleError::Always { tool: format!("{plugin}.{action}") });
        }
        if !patterns.is_empty() && !approved.asks_because_of_declaration() {
            return Err(RuleError::Dangerous { why: approved.why.clone() });
        }
        if let Some(name) = patterns.keys().find(|name| !args.contains_key(*name)) {
            return Err(RuleError::NoArgument { name: name.chars().take(100).collect() });
        }
        let mut arguments = BTreeMap::new();
        for (name, text) in args {
            let argument = match patterns.get(name) {
                Some(pattern) => {
                    let wrong = |why| RuleError::Pattern { name: name.clone(), why };
                    let expression = compile(pattern)
                        .ok_or_else(|| wrong("it has more than 1 KiB, or ends in a backslash"))?;
                    if !expression.is_match(text) {
                        return Err(wrong(
                            "it does not cover what was shown; `*` stops at ;&|<>()$` and line ends, `**` does not",
                        ));
                    }
                    RuleArgument::Pattern(pattern.clone())
                }
                None => RuleArgument::Same { text: text.clone(), json: approved.json.get(name).cloned() },
            };
            arguments.insert(name.clone(), argument);
        }
        let bytes = arguments.iter().map(|(name, argument)| name.len() + argument.text().len()).sum();
        if bytes > MAX_RULE_BYTES {
            return Err(RuleError::TooLarge { bytes });
        }
        Ok(Self {
            id: Ulid::generate().to_string(),
            sender: approved.sender.clone(),
            session: (scope == RuleScope::Session).then(|| approved.call.session.clone()),
            plugin: plugin.clone(),
            action: action.clone(),
            arguments,
            created_by: by.to_owned(),
            created_at: Timestamp::now(),
            uses: 0,
            used_at: None,
        })
    }

    fn is_exact(&self) -> bool {
        self.arguments.values().all(|argument| matches!(argument, RuleArgument::Same { .. }))
    }

    pub(super) fn to_wire(&self) -> agent::ApprovalRule {
        let of_kind = |same: bool| {
            let kind = |argument: &RuleArgument| matches!(argument, RuleArgument::Same { .. }) == same;
            let each = self.arguments.iter().filter(|(_, argument)| kind(argument));
            each.map(|(name, argument)| (name.clone(), argument.text().to_owned())).collect()
        };
        let millis = |time: Timestamp| time.as_millis().unsigned_abs();
        agent::ApprovalRule {
            id: self.id.clone(),
            sender: self.sender.clone(),
            session_id: self.session.clone().unwrap_or_default(),
            plugin: self.plugin.clone(),
            action: self.action.clone(),
            arguments: of_kind(true),
            patterns: of_kind(false),
            created_by: self.created_by.clone(),
            created_unix_ms: millis(self.created_at),
            uses: self.uses,
            used_unix_ms: self.used_at.map(millis).unwrap_or_default(),
        }
    }
}

impl RuleArgument {
    fn text(&self) -> &str {
        match self {
            Self::Same { text, .. } | Self::Pattern(text) => text,
        }
    }
}

/// A rule with its patterns compiled.
#[derive(Debug, Clone)]
pub(super) struct CompiledRule {
    pub(super) rule: ApprovalRule,
    patterns: BTreeMap<String, Regex>,
}

impl CompiledRule {
    /// `None` if a pattern cannot be used.
    pub(super) fn new(rule: ApprovalRule) -> Option<Self> {
        let mut patterns = BTreeMap::new();
        for (name, argument) in &rule.arguments {
            if let RuleArgument::Pattern(pattern) = argument {
                patterns.insert(name.clone(), compile(pattern)?);
            }
        }
        Some(Self { rule, patterns })
    }

    /// Whether it lets a call through that asks for this reason.
    pub(super) fn covers(&self, call: &CallToConfirm<'_>, why: &ConfirmReason) -> bool {
        let rule = &self.rule;
        let reaches = match why {
            ConfirmReason::Declared | ConfirmReason::Undeclared => true,
            ConfirmReason::Pattern(_) => rule.is_exact(),
            ConfirmReason::Always | ConfirmReason::Unreadable(_) | ConfirmReason::TooLong => false,
        };
        reaches
            && rule.sender == call.caller.sender
            && rule.session.as_ref().is_none_or(|session| *session == call.caller.session)
            && (rule.plugin.as_str(), rule.action.as_str()) == (call.plugin, call.action)
            && rule.arguments.len() == call.args.len()
            && call.args.iter().all(|(name, text)| match rule.arguments.get(name) {
                Some(RuleArgument::Same { text: same, json }) => {
                    same == text && json.as_deref() == json_of(call, name)
                }
                Some(RuleArgument::Pattern(_)) => {
                    self.patterns.get(name).is_some_and(|pattern| pattern.is_match(text))
                }
                None => false,
            })
    }
}

/// The JSON of an argument that is no string.
fn json_of<'c>(call: &CallToConfirm<'c>, name: &str) -> Option<&'c str> {
    let json = call.json.iter().find(|(known, _)| *known == name).map(|(_, json)| json);
    json.filter(|json| !json.starts_with('"'))
}
