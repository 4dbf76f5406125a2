//! What a notification sink is asked, and what it answers.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::text::cut;
use crate::limits::{MAX_REASON_CHARS, MAX_RETRY_AFTER};
use crate::{EventKind, EventSeverity, template};

/// The arguments of a notification sink.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotificationRequest {
    /// What happened. Of a digest, what stands for all of it.
    pub event: Event,
    /// The events of a digest, the oldest first; at most 100. Otherwise left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

/// Something that people may want to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// What identifies it, the same in every attempt: a receiver that knows it already drops it.
    pub id: String,
    /// What it is about. A later version may send others.
    #[schemars(with = "String", example = &"plugin.failed")]
    pub kind: EventKind,
    /// How much it matters.
    pub severity: EventSeverity,
    /// What happened, in a line of at most 500 characters.
    pub summary: String,
    /// More about it, at most 16 KiB; may be empty.
    #[serde(default)]
    pub details: String,
    /// When it happened, in milliseconds since the beginning of 1970 in UTC.
    pub time_unix_ms: i64,
    /// Further values, by the kind: see the table of kinds.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
    /// The number of events that it stands for.
    #[serde(default = "one")]
    pub count: u64,
}

fn one() -> u64 {
    1
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// The receiver has it.
    Delivered,
    /// Not yet: it is tried again.
    Retry,
    /// Never: it is not tried again, and shown by `talon notification list`.
    Refused,
}

/// The structured answer of a notification sink.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotificationReply {
    /// What became of it.
    pub status: DeliveryStatus,
    /// Why, in a sentence for the operator. More than 500 characters are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// With `retry`: the least time until the next attempt, in seconds; at most an hour counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<f64>,
}

/// An answer that says nothing of the kind. It counts as `retry`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("its answer is none of a notification sink: {0}")]
pub struct NotificationReplyError(String);

impl NotificationRequest {
    /// The same for these arguments: of an event of a plugin, each field that they name has a value, since its fields are the
    /// plugin's own.
    #[must_use]
    pub fn variables_for(&self, args: &Map<String, Value>) -> Value {
        let mut variables = self.variables();
        if self.event.kind == EventKind::SourceEvent {
            add_named_fields(&mut variables, args);
        }
        variables
    }

    /// What placeholders find: the request, with an empty value for each field that the event does not have.
    #[must_use]
    pub fn variables(&self) -> Value {
        // The type has string keys only.
        let mut variables = serde_json::to_value(self).unwrap_or_default();
        for (name, value) in EventKind::empty_fields() {
            if !self.event.fields.contains_key(&name) {
                variables["event"]["fields"][name] = value.into();
            }
        }
        variables
    }
}

/// Adds an empty value for each field of the event that placeholders name and that is not there.
pub(crate) fn add_named_fields(variables: &mut Value, args: &Map<String, Value>) {
    let Some(fields) = variables["event"]["fields"].as_object_mut() else { return };
    for name in template::names(args) {
        if let Some(name) = name.strip_prefix("event.fields.") {
            fields.entry(name).or_insert_with(|| Value::String(String::new()));
        }
    }
}

impl NotificationReply {
    /// Reads an answer. Fields that it does not know are left alone.
    ///
    /// # Errors
    /// [`NotificationReplyError`], which repeats little of the answer.
    pub fn parse(structured: &Value) -> Result<Self, NotificationReplyError> {
        let mut reply = Self::deserialize(structured).map_err(|error| {
            const MOST: usize = 200;
            NotificationReplyError(error.to_string().chars().take(MOST).collect())
        })?;
        reply.reason = reply.reason.map(|reason| cut(reason, MAX_REASON_CHARS));
        Ok(reply)
    }

    /// The least time until the next attempt, between none and an hour.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.retry_after_seconds.filter(|seconds| *seconds >= 0.0)?;
        Some(Duration::try_from_secs_f64(seconds).map_or(MAX_RETRY_AFTER, |wait| wait.min(MAX_RETRY_AFTER)))
    }
}

/// A request with every member, for checks.
pub(super) fn sample() -> NotificationRequest {
    let kind = EventKind::PluginFailed;
    let event = Event {
        id: "01J00000000000000000000000".to_owned(),
        kind,
        severity: kind.severity(),
        summary: "The plugin code-search failed".to_owned(),
        details: "It exited with status 1 five times within a minute.".to_owned(),
        time_unix_ms: 1_780_000_000_000,
        fields: BTreeMap::from([
            ("plugin".to_owned(), "code-search".to_owned()),
            ("reason".to_owned(), "exited with status 1".to_owned()),
        ]),
        count: 1,
    };
    NotificationRequest { event, events: Vec::new(), attempt: 1 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Promises: EXT-43
    #[test]
    fn an_answer_is_read_or_counts_as_none() {
        let read = |value: Value| NotificationReply::parse(&value);
        let plain =
            read(json!({"status": "delivered", "message_id": "7"})).expect("more fields do not matter");
        assert_eq!((plain.status, plain.retry_after()), (DeliveryStatus::Delivered, None));
        for (seconds, wait) in
            [(json!(5), Some(5)), (json!(0.0), Some(0)), (json!(1e300), Some(3600)), (json!(-1), None)]
        {
            let reply = read(json!({"status": "retry", "retry_after_seconds": seconds})).expect("read");
            assert_eq!(reply.retry_after(), wait.map(Duration::from_secs), "{seconds}");
        }
        let long = read(json!({"status": "refused", "reason": "é".repeat(5000)})).expect("read");
        assert_eq!(long.reason.expect("a reason").chars().count(), MAX_REASON_CHARS + 1);
        for wrong in
            [json!({}), json!({"status": "ok"}), json!("delivered"), json!(null), json!({"status": 1})]
        {
            assert!(read(wrong.clone()).expect_err("none").to_string().len() < 300, "{wrong}");
        }
    }

    #[test]
    fn placeholders_find_every_field() {
        let variables = sample().variables();
        assert_eq!(variables["event"]["fields"]["plugin"], "code-search");
        assert_eq!(variables["event"]["fields"]["job"], "");
        assert_eq!(variables["attempt"], 1);
    }
}
