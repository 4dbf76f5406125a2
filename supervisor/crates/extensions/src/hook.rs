//! The keys of one filter or hook.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use talon_agent_settings::TimeSpan;

use crate::Role;

/// What a verdict may do besides letting the message pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Set metadata of the turn. The message stays as it is.
    Annotate,
    /// Put another message in its place. The original is kept in the journal.
    Replace,
    /// Take it away: the person is told the reason instead.
    Drop,
}

/// What happens if a hook does not answer, or answers with something that it may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailurePolicy {
    /// The turn ends with an error.
    Closed,
    /// The turn goes on as if the hook were not there. A notice and a log line say so.
    Open,
}

/// When people see the text of an answer that a response hook may still change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamMode {
    /// After the hook has seen the whole answer.
    Hold,
    /// While the model writes it. What the hook takes away was then seen already.
    Through,
}

/// A filter or hook: an action that looks at every message or every answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookEntry {
    /// The action, as `plugin.action`.
    #[schemars(example = &"pii.scan")]
    pub action: String,
    /// The entry's name in logs, metrics and the journal, unique in its list. By default the action's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What its verdict may do besides letting the message pass. A verdict that does something else counts as a failure.
    ///
    /// `replace` has to be written, since it lets a plugin put words into a person's or the agent's mouth. A filter never
    /// replaces.
    #[serde(default = "default_may")]
    pub may: Vec<Effect>,
    /// What happens if it fails: it does not answer within its deadline, its answer is no verdict, is cut, or does what it
    /// may not. By default `closed`; `open` for a response hook that only annotates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<FailurePolicy>,
    /// How long it may take; at most 5 minutes. The plugin's own limit holds beside it.
    #[serde(default = "default_deadline")]
    pub deadline: TimeSpan,
    /// The arguments, for an action that does not declare the role. Texts may hold `{{ message }}`, `{{ session.id }}`,
    /// `{{ metadata.NAME }}` and the other values of the role; see docs/extensions/templates.md. By default the action
    /// gets `message`, `session` and `metadata`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// Keys of metadata that it gets from the hooks before it; others stay hidden from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata: Vec<String>,
    /// Sub-agents whose tasks and results it looks at as well. By default it sees none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<String>,
    /// For response hooks: when people see the text. By default `hold`, if it may replace or drop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamMode>,
}

fn default_may() -> Vec<Effect> {
    vec![Effect::Annotate, Effect::Drop]
}

fn default_deadline() -> TimeSpan {
    TimeSpan::from_secs(5)
}

impl HookEntry {
    /// What stands in `metadata` for all keys, in the entries of an operator's own scripts alone: a written entry names each
    /// key, and this is none.
    pub const ALL_METADATA: &str = "*";

    /// An entry for this action, with the defaults of all keys.
    #[must_use]
    pub fn new(action: impl Into<String>) -> Self {
        Self {
            action: action.into(),
            name: None,
            may: default_may(),
            on_failure: None,
            deadline: default_deadline(),
            args: None,
            metadata: Vec::new(),
            subagents: Vec::new(),
            stream: None,
        }
    }

    /// The entry's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.action)
    }

    /// Whether it gets metadata of this key.
    #[must_use]
    pub fn reads_metadata(&self, key: &str) -> bool {
        self.metadata.iter().any(|listed| listed == key || listed == Self::ALL_METADATA)
    }

    /// Whether its verdict may do this.
    #[must_use]
    pub fn may(&self, effect: Effect) -> bool {
        self.may.contains(&effect)
    }

    /// What happens if it fails.
    #[must_use]
    pub fn policy(&self, role: Role) -> FailurePolicy {
        let only_annotates = !self.may(Effect::Replace) && !self.may(Effect::Drop);
        let default = if role == Role::ResponseHook && only_annotates {
            FailurePolicy::Open
        } else {
            FailurePolicy::Closed
        };
        self.on_failure.unwrap_or(default)
    }

    /// How long it may take.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline.get()
    }

    /// Whether the text of an answer waits for it, if it is a response hook.
    #[must_use]
    pub fn holds_text(&self) -> bool {
        let changes = self.may(Effect::Replace) || self.may(Effect::Drop);
        // One that only annotates, but ends the turn if it fails, takes the answer away as well.
        let ends = self.policy(Role::ResponseHook) == FailurePolicy::Closed;
        (changes || ends) && self.stream != Some(StreamMode::Through)
    }

    /// Whether it looks at the turns of this sub-agent; of the agent itself, if the name is empty.
    #[must_use]
    pub fn sees(&self, subagent: &str) -> bool {
        subagent.is_empty() || self.subagents.iter().any(|name| name == subagent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(yaml: &str) -> HookEntry {
        serde_saphyr::from_str(yaml).expect("an entry")
    }

    #[test]
    fn what_is_not_said_is_safe() {
        let plain = entry("action: pii.scan");
        assert_eq!(plain, HookEntry::new("pii.scan"));
        assert_eq!((plain.name(), plain.deadline()), ("pii.scan", Duration::from_secs(5)));
        assert!(plain.may(Effect::Annotate) && plain.may(Effect::Drop) && !plain.may(Effect::Replace));
        assert!(Role::ALL.iter().all(|role| plain.policy(*role) == FailurePolicy::Closed));
        assert!(plain.holds_text() && plain.sees("") && !plain.sees("researcher"));
    }

    #[test]
    fn a_response_hook_that_only_annotates_is_open_and_holds_nothing() {
        let notes = entry("{ action: a.b, may: [annotate] }");
        assert_eq!(notes.policy(Role::ResponseHook), FailurePolicy::Open);
        assert_eq!(notes.policy(Role::RequestHook), FailurePolicy::Closed);
        assert!(!notes.holds_text());
        let strict = entry("{ action: a.b, may: [annotate], on_failure: closed }");
        assert!(strict.holds_text());
        assert!(!entry("{ action: a.b, stream: through }").holds_text());
    }
}
