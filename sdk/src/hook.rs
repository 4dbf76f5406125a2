//! What a filter, a request hook or a response hook is asked, and what it answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::IntoOutput;
use crate::{Output, ToolError};

/// A message that a filter or hook looks at: the parameter of a function with [`#[filter]`](macro@crate::filter),
/// [`#[request_hook]`](macro@crate::request_hook) or [`#[response_hook]`](macro@crate::response_hook).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct HookRequest {
    /// The message: the person's, or the agent's answer for a response hook.
    pub message: String,
    /// In which session it was sent.
    #[serde(default)]
    pub session: HookSession,
    /// What earlier hooks noted, as far as the operator lists the keys for this one.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

/// The session of a message. A host of another version may leave out what it does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HookSession {
    /// Its id.
    pub id: String,
    /// The number of the turn in it, from 1.
    pub turn: u64,
    /// Whose session it is.
    pub sender: String,
    /// The channel, such as `cli`.
    pub channel: String,
    /// The sub-agent whose task it is; empty for the agent itself.
    pub subagent: String,
}

/// What is to become of a message. The operator decides what a hook may do; a verdict that does more counts as a failure.
///
/// ```
/// use talon_sdk::{HookRequest, ToolError, Verdict};
///
/// /// Marks what is urgent.
/// #[talon_sdk::request_hook]
/// async fn priority(asked: HookRequest) -> Result<Verdict, ToolError> {
///     Ok(if asked.message.contains("urgent") {
///         Verdict::annotate("priority", "high")
///     } else {
///         Verdict::pass()
///     })
/// }
/// # assert_eq!(priority().action().roles, ["request_hook"]);
/// ```
#[must_use = "a verdict does nothing until it is returned"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Verdict {
    fn of(verdict: &'static str) -> Self {
        Self { verdict, message: None, metadata: BTreeMap::new(), reason: None }
    }

    /// The message goes on as it is.
    pub fn pass() -> Self {
        Self::of("pass")
    }

    /// The message goes on as it is, and `value` is noted under `key`.
    pub fn annotate(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self::of("annotate").note(key, value)
    }

    /// `message` takes its place. Of request hooks and response hooks.
    pub fn replace(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::of("replace") }
    }

    /// The message goes no further; the person is told `reason`.
    pub fn drop(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::of("drop") }
    }

    /// Notes `value` under `key` as well. Of [`annotate`](Self::annotate) and [`replace`](Self::replace).
    pub fn note(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }
}

impl IntoOutput for Verdict {
    fn into_output(self) -> Result<Output, ToolError> {
        Output::text(self.verdict).structured(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_verdict_is_structured_content() {
        let said = |verdict: Verdict| verdict.into_output().expect("JSON").structured_content().cloned();
        assert_eq!(said(Verdict::pass()), Some(json!({"verdict": "pass"})));
        assert_eq!(said(Verdict::drop("no")), Some(json!({"verdict": "drop", "reason": "no"})));
        assert_eq!(
            said(Verdict::replace("b").note("k", "v")),
            Some(json!({"verdict": "replace", "message": "b", "metadata": {"k": "v"}}))
        );
    }
}
