//! What a notification sink is asked, and what it answers.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::output::IntoOutput;
use crate::{Output, ToolError};

/// What a notification sink delivers: the parameter of a function with
/// [`#[notification_sink]`](macro@crate::notification_sink).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Notification {
    /// What happened. Of a digest, what stands for all of it.
    pub event: Event,
    /// The events of a digest, the oldest first; otherwise empty.
    #[serde(default)]
    pub events: Vec<Event>,
    /// The number of the attempt, from 1.
    #[serde(default = "first")]
    pub attempt: u32,
}

fn first() -> u32 {
    1
}

/// Something that people may want to know.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Event {
    /// What identifies it, the same in every attempt: pass it on, so that a receiver can drop what it has already.
    pub id: String,
    /// What it is about, such as `plugin.failed`. A host of another version may send others.
    pub kind: String,
    /// How much it matters.
    pub severity: Severity,
    /// What happened, in a line.
    pub summary: String,
    /// More about it; may be empty.
    #[serde(default)]
    pub details: String,
    /// When it happened, in milliseconds since the beginning of 1970 in UTC.
    pub time_unix_ms: i64,
    /// Further values, by the kind.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
    /// The number of events that it stands for.
    #[serde(default = "one")]
    pub count: u64,
}

fn one() -> u64 {
    1
}

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Somebody should look at it.
    Warning,
    /// Something does not work.
    Critical,
}

impl Severity {
    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// What became of a notification. An error of the function counts as [`retry`](Self::retry).
///
/// ```
/// use talon_sdk::{Delivery, Notification, ToolError};
///
/// /// Writes events into the log.
/// #[talon_sdk::notification_sink]
/// async fn write_log(asked: Notification) -> Result<Delivery, ToolError> {
///     if asked.event.summary.is_empty() {
///         return Ok(Delivery::refused("it says nothing"));
///     }
///     talon_sdk::tracing::warn!(id = asked.event.id, "{}", asked.event.summary);
///     Ok(Delivery::delivered())
/// }
/// # assert_eq!(write_log().action().roles, ["notification_sink"]);
/// ```
#[must_use = "a delivery is not known until it is returned"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Delivery {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u64>,
}

impl Delivery {
    fn of(status: &'static str, reason: Option<String>) -> Self {
        Self { status, reason, retry_after_seconds: None }
    }

    /// The receiver has it.
    pub fn delivered() -> Self {
        Self::of("delivered", None)
    }

    /// Not yet: it is tried again.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::of("retry", Some(reason.into()))
    }

    /// Never: it is not tried again, and shown to the operator with the reason.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self::of("refused", Some(reason.into()))
    }

    /// The least time until the next attempt, in whole seconds rounded up. Of [`retry`](Self::retry); at most an hour counts.
    pub fn after(mut self, wait: Duration) -> Self {
        self.retry_after_seconds = Some(wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
        self
    }

    /// `delivered`, `retry` or `refused`.
    #[must_use]
    pub fn status(&self) -> &'static str {
        self.status
    }
}

impl IntoOutput for Delivery {
    fn into_output(self) -> Result<Output, ToolError> {
        Output::text(self.status).structured(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_delivery_is_structured_content() {
        let said = |delivery: Delivery| delivery.into_output().expect("JSON").structured_content().cloned();
        assert_eq!(said(Delivery::delivered()), Some(json!({"status": "delivered"})));
        assert_eq!(
            said(Delivery::retry("busy").after(Duration::from_millis(1500))),
            Some(json!({"status": "retry", "reason": "busy", "retry_after_seconds": 2}))
        );
        assert_eq!(said(Delivery::refused("no")), Some(json!({"status": "refused", "reason": "no"})));
    }
}
