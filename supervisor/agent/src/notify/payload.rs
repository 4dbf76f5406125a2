//! What a notification stores of its events, and how it tells them.

use serde::{Deserialize, Serialize};
use talon_extensions::contract::{Event, NotificationRequest};
use talon_extensions::{EventKind, EventSeverity};
use talon_store::Notification;
use talon_store::limits::MAX_PAYLOAD_BYTES;

use super::event::{MAX_DETAILS_BYTES, cut, summary};
use super::group::is_alike;

/// The most events of a digest, with the one that stands for those that are not in it.
pub(super) const MAX_EVENTS: usize = 100;
/// The longest details of an event in a digest.
const MAX_DIGESTED_DETAILS_BYTES: usize = 1024;

/// The events of a notification, as they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Payload {
    /// Whether they are told as a digest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) digest: bool,
    /// The events, the oldest first; at least one.
    pub(super) events: Vec<Event>,
    /// The ids of the first of those events that are only counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) joined: Vec<String>,
}

/// What is stored is no payload: another version wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the notification is stored in a form that this version does not read")]
pub(crate) struct PayloadError;

impl Payload {
    /// One event, told by itself.
    pub(super) fn of(event: Event) -> Self {
        Self { digest: false, events: vec![event], joined: Vec::new() }
    }

    /// The first event of a digest.
    pub(super) fn digest_of(event: Event) -> Self {
        Self { digest: true, events: vec![digested(event)], joined: Vec::new() }
    }

    /// Reads what a notification stores.
    ///
    /// # Errors
    /// [`PayloadError`]
    pub(crate) fn read(json: &str) -> Result<Self, PayloadError> {
        let read: Self = serde_json::from_str(json).map_err(|_| PayloadError)?;
        if read.events.is_empty() { Err(PayloadError) } else { Ok(read) }
    }

    pub(super) fn json(&self) -> String {
        // The types have string keys only.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether an event is told already.
    pub(super) fn has(&self, id: &str) -> bool {
        self.events.iter().any(|event| event.id == id) || self.joined.iter().any(|joined| joined == id)
    }

    /// Notes an event that is only counted.
    pub(super) fn join(&mut self, id: &str) {
        if self.joined.len() < MAX_EVENTS {
            self.joined.push(id.to_owned());
        }
    }

    /// Adds an event to a digest. `join` counts one like another as that. When the digest is full, further ones
    /// are counted by an event of their own.
    pub(super) fn add(&mut self, event: Event, join: bool) {
        if let Some(same) = self.events.iter_mut().find(|same| join && is_alike(same, &event)) {
            same.count = same.count.saturating_add(event.count);
            self.join(&event.id);
            return;
        }
        let event = digested(event);
        let is_gap = |last: &Event| last.kind == EventKind::EventsGap && last.fields.is_empty();
        // The one that counts the others has its place, and stays the last.
        let full = self.events.len() >= MAX_EVENTS - 1
            || self.events.last().is_some_and(is_gap)
            || self.json().len() + size(&event) > MAX_PAYLOAD_BYTES - 4 * MAX_DIGESTED_DETAILS_BYTES;
        if !full {
            self.events.push(event);
            return;
        }
        match self.events.last_mut().filter(|last| is_gap(last)) {
            Some(gap) => gap.count = gap.count.saturating_add(event.count),
            None => self.events.push(Event {
                id: format!("{} and more", event.id),
                kind: EventKind::EventsGap,
                severity: EventKind::EventsGap.severity(),
                summary: String::new(),
                details: String::new(),
                fields: Default::default(),
                ..event
            }),
        }
        if let Some(gap) = self.events.last_mut() {
            gap.summary = format!("{} more events, for which the digest has no room", gap.count);
        }
    }

    /// How much it matters: as much as its most severe event.
    pub(super) fn severity(&self) -> EventSeverity {
        self.events.iter().map(|event| event.severity).max().unwrap_or(EventSeverity::Info)
    }

    /// The event that stands for all.
    pub(crate) fn event(&self, id: &str, count: u64) -> Event {
        // The first of the most severe ones. There is one, but another version may have written it.
        let severity = self.severity();
        let Some(first) = self.events.iter().find(|event| event.severity == severity) else {
            return Event {
                id: id.to_owned(),
                kind: EventKind::EventsGap,
                severity,
                summary: String::new(),
                details: String::new(),
                time_unix_ms: 0,
                fields: Default::default(),
                count,
            };
        };
        if !self.digest {
            let summary = match first.kind {
                EventKind::EventsGap => gap_summary(count),
                _ => first.summary.clone(),
            };
            return Event { id: id.to_owned(), summary, count, ..first.clone() };
        }
        let lines: Vec<String> = self.events.iter().map(line).collect();
        Event {
            id: id.to_owned(),
            kind: first.kind,
            severity,
            summary: summary(&if count == 1 {
                first.summary.clone()
            } else {
                format!("{count} events; the most important: {}", first.summary)
            }),
            details: cut(&lines.join("\n"), MAX_DETAILS_BYTES),
            time_unix_ms: self.events.last().map_or(first.time_unix_ms, |last| last.time_unix_ms),
            fields: Default::default(),
            count,
        }
    }

    /// What a sink is asked at an attempt.
    pub(super) fn request(&self, notification: &Notification) -> NotificationRequest {
        NotificationRequest {
            event: self.event(&notification.id, notification.count),
            events: if self.digest { self.events.clone() } else { Vec::new() },
            attempt: notification.attempt,
        }
    }
}

/// What is said of events that are not told one by one.
pub(super) fn gap_summary(count: u64) -> String {
    format!("{count} events are not told one by one, since more came than are kept")
}

fn line(event: &Event) -> String {
    let times = if event.count == 1 { String::new() } else { format!(" ({} times)", event.count) };
    format!("{}: {}{times}", event.kind, event.summary)
}

fn size(event: &Event) -> usize {
    serde_json::to_string(event).map_or(0, |json| json.len())
}

fn digested(event: Event) -> Event {
    let details = cut(&event.details, MAX_DIGESTED_DETAILS_BYTES);
    Event { details, ..event }
}
