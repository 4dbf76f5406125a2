//! Events within their bounds.

use std::collections::BTreeMap;

use talon_extensions::EventKind;
use talon_extensions::contract::Event;
use talon_sanitize::truncate;
use talon_store::Timestamp;

/// The longest summary, in characters: a line of a chat.
pub(super) const MAX_SUMMARY_CHARS: usize = 500;
/// The longest details: a notification is read, and a larger text is where it was written.
pub(super) const MAX_DETAILS_BYTES: usize = 16 * 1024;
/// The most fields. Every kind has fewer; the bound is for events of others.
const MAX_FIELDS: usize = 32;
/// The longest name of a field.
const MAX_FIELD_NAME_BYTES: usize = 64;
/// The longest value of a field.
const MAX_FIELD_BYTES: usize = 512;
/// The longest id of an event: the store takes no longer name.
const MAX_ID_BYTES: usize = 200;
/// What stands at the end of a text that was cut.
const MORE: &str = "…";

/// Something that happened, to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewEvent {
    pub(crate) kind: EventKind,
    /// What identifies it: told twice, it counts once.
    pub(crate) id: String,
    pub(crate) summary: String,
    pub(crate) details: String,
    pub(crate) fields: BTreeMap<String, String>,
}

impl NewEvent {
    /// An event without details.
    pub(crate) fn new(kind: EventKind, id: impl Into<String>, summary: impl Into<String>) -> Self {
        let (id, summary) = (id.into(), summary.into());
        Self { kind, id, summary, details: String::new(), fields: BTreeMap::new() }
    }

    /// With more about it.
    pub(crate) fn details(mut self, details: impl Into<String>) -> Self {
        self.details = details.into();
        self
    }

    /// With the value of a field; an empty one is left out.
    pub(crate) fn field(mut self, name: &str, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.fields.insert(name.to_owned(), value);
        }
        self
    }

    /// The event, which happened now.
    pub(crate) fn happened(self) -> Event {
        let Self { kind, id, summary, details, fields } = self;
        let (severity, time_unix_ms) = (kind.severity(), Timestamp::now().as_millis());
        within_bounds(Event { id, kind, severity, summary, details, time_unix_ms, fields, count: 1 })
    }
}

/// The event with all its texts cut to their bounds, and without characters that the store does not take.
pub(crate) fn within_bounds(event: Event) -> Event {
    let text = |text: &str, bytes| cut(&text.replace('\0', ""), bytes);
    let fields = event.fields.iter().filter(|(name, _)| name.len() <= MAX_FIELD_NAME_BYTES).take(MAX_FIELDS);
    Event {
        id: line(&text(&event.id, MAX_ID_BYTES)),
        summary: summary(&event.summary),
        details: text(&event.details, MAX_DETAILS_BYTES),
        fields: fields
            .map(|(name, value)| (text(name, MAX_FIELD_NAME_BYTES), text(value, MAX_FIELD_BYTES)))
            .collect(),
        count: event.count.max(1),
        time_unix_ms: event.time_unix_ms.max(0),
        ..event
    }
}

/// A text of at most so many bytes.
pub(super) fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    truncate(text, bytes.saturating_sub(MORE.len()), MORE).into_owned()
}

/// A text as a summary: one line.
pub(super) fn summary(text: &str) -> String {
    let one = line(text);
    match one.char_indices().nth(MAX_SUMMARY_CHARS - 1) {
        Some((end, _)) if one[end..].chars().nth(1).is_some() => format!("{}…", &one[..end]),
        _ => one,
    }
}

fn line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_event_is_larger_than_its_bounds(
            id in ".{0,300}", words in ".{0,900}", details in ".{0,20}", times in 0_usize..2000,
            names in prop::collection::vec(".{1,100}", 0..50),
        ) {
            let mut event = NewEvent::new(EventKind::Answer, id, words).details(details.repeat(times));
            for name in &names {
                event = event.field(name, name.repeat(20));
            }
            let event = event.happened();
            prop_assert!(event.summary.chars().count() <= MAX_SUMMARY_CHARS);
            prop_assert!(event.details.len() <= MAX_DETAILS_BYTES && event.fields.len() <= MAX_FIELDS);
            prop_assert!(event.id.len() <= MAX_ID_BYTES && !event.id.chars().any(char::is_control));
            prop_assert!(!event.summary.chars().any(char::is_control));
            for (name, value) in &event.fields {
                prop_assert!(name.len() <= MAX_FIELD_NAME_BYTES && value.len() <= MAX_FIELD_BYTES);
            }
            let json = serde_json::to_string(&event).expect("JSON");
            prop_assert!(!json.contains('\0'));
            prop_assert_eq!(within_bounds(event.clone()), event);
        }
    }
}
