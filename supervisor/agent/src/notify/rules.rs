//! Which entries an event is for, and when it is told: a pure function of the entries, the events, what is
//! stored of their groups, and the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use talon_extensions::contract::Event;
use talon_extensions::{EventKind, EventSeverity, NotificationEntry};
use talon_schedule::{DailyHours, Timestamp as ClockTime, Zone};
use talon_store::{
    GroupKey, NewNotification, Notification, NotificationBatch, NotificationChange, NotificationState,
    Timestamp,
};

use super::group::Grouping;
use super::payload::Payload;

/// How much later than its interval allows a group's latest notification may be due. Quiet hours are shorter; one
/// that is due later was made while the clock was wrong, and counts no more.
const MAX_QUIET: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// The configured entries.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    entry: NotificationEntry,
    quiet: Option<DailyHours>,
}

/// An event, and the one entry that it is for; without one, the entries that take it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Incoming {
    pub(super) event: Event,
    pub(super) to: Option<String>,
}

/// What the store has of events.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// The latest notifications of their [`groups`](Rules::groups).
    pub(super) latest: Vec<Notification>,
    /// Those of their [`pairs`](Rules::pairs) that made a notification already.
    pub(super) known: BTreeSet<(String, String)>,
}

impl Rules {
    pub(super) fn new(entries: &[NotificationEntry]) -> Self {
        let rules = entries.iter().map(|entry| Rule { quiet: hours(entry), entry: entry.clone() });
        Self { rules: rules.collect() }
    }

    /// The entry of this name.
    pub(super) fn get(&self, name: &str) -> Option<&NotificationEntry> {
        self.entries().find(|entry| entry.name() == name)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &NotificationEntry> {
        self.rules.iter().map(|rule| &rule.entry)
    }

    /// The names of the entries that take an event.
    pub(super) fn takers<'r>(&'r self, event: &'r Event) -> impl Iterator<Item = &'r str> {
        self.entries().filter(|entry| entry.takes(event.kind, &event.fields)).map(NotificationEntry::name)
    }

    fn targets<'r>(&'r self, incoming: &'r Incoming) -> impl Iterator<Item = &'r Rule> {
        let Incoming { event, to } = incoming;
        self.rules.iter().filter(move |rule| match to {
            Some(name) => rule.entry.name() == name,
            None => rule.entry.takes(event.kind, &event.fields),
        })
    }

    /// The groups whose latest notification has to be known to decide about events, each once.
    pub(super) fn groups(&self, events: &[Incoming]) -> Vec<GroupKey> {
        let keys = events.iter().flat_map(|incoming| {
            let rules = self.targets(incoming);
            rules.filter_map(|rule| rule.known_group(&incoming.event))
        });
        let mut keys: Vec<GroupKey> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The events with the entries that they are for.
    pub(super) fn pairs(&self, events: &[Incoming]) -> Vec<(String, String)> {
        let pair =
            |incoming: &Incoming, rule: &Rule| (incoming.event.id.clone(), rule.entry.name().to_owned());
        let pairs =
            events.iter().flat_map(|incoming| self.targets(incoming).map(move |rule| pair(incoming, rule)));
        pairs.collect()
    }

    /// Decides about events, in their order. `stored` is what the store has of them.
    pub(super) fn decide(
        &self,
        events: &[Incoming],
        stored: Stored,
        now: Timestamp,
        new_id: &mut dyn FnMut() -> String,
    ) -> NotificationBatch {
        let Stored { latest, mut known } = stored;
        let mut slots: BTreeMap<GroupKey, Slot> =
            self.groups(events).into_iter().map(|key| (key, Slot::default())).collect();
        for notification in latest {
            if let Some(slot) = slots.get_mut(&notification.key()) {
                slot.seen = Some(notification.seen());
                slot.latest = Latest::stored(notification);
            }
        }
        let mut changes = Vec::new();
        for incoming in events {
            let event = &incoming.event;
            for rule in self.targets(incoming) {
                // Told to the entry before, also a moment ago.
                if !known.insert((event.id.clone(), rule.entry.name().to_owned())) {
                    continue;
                }
                match rule.known_group(event).and_then(|key| slots.get_mut(&key)) {
                    None => changes.push(rule.alone(event, now, new_id())),
                    Some(slot) => changes.extend(slot.take(rule, event, now, new_id)),
                }
            }
        }
        let groups = slots.iter().map(|(key, slot)| (key.clone(), slot.seen.clone())).collect();
        changes.extend(slots.into_values().filter_map(|slot| slot.latest?.change()));
        NotificationBatch { groups, changes, cursor: None }
    }
}

/// A group while it is decided about.
#[derive(Default)]
struct Slot {
    /// The latest notification in the store.
    seen: Option<(String, u64)>,
    /// The latest one by now.
    latest: Option<Latest>,
}

/// The latest notification of a group.
struct Latest {
    id: String,
    due_at: Timestamp,
    closes_at: Timestamp,
    payload: Payload,
    /// Not stored yet, but for payload, severity and count.
    new: Option<NewNotification>,
    /// How many events it takes in.
    more: u64,
}

impl Latest {
    /// `None` for what another version wrote.
    fn stored(notification: Notification) -> Option<Self> {
        let is_open = notification.state == NotificationState::Waiting && notification.attempt == 0;
        Some(Self {
            payload: Payload::read(&notification.payload).ok()?,
            id: notification.id,
            due_at: notification.due_at,
            closes_at: if is_open { notification.closes_at } else { Timestamp::from_millis(0) },
            new: None,
            more: 0,
        })
    }

    /// What is to be stored of it, if anything is.
    fn change(self) -> Option<NotificationChange> {
        let severity = severity_word(self.payload.severity()).to_owned();
        let payload = self.payload.json();
        match self.new {
            Some(new) => {
                let count = new.count.saturating_add(self.more);
                Some(NotificationChange::New(NewNotification { payload, severity, count, ..new }))
            }
            None if self.more == 0 => None,
            None => Some(NotificationChange::Extend {
                id: self.id,
                more: self.more,
                payload: Some(payload),
                severity,
            }),
        }
    }
}

impl Slot {
    /// Takes an event into the group. Returns the change of a notification that takes in no more.
    fn take(
        &mut self,
        rule: &Rule,
        event: &Event,
        now: Timestamp,
        new_id: &mut dyn FnMut() -> String,
    ) -> Option<NotificationChange> {
        let grouping = rule.grouping(event);
        // It was only counted, perhaps by what is delivered by now.
        if self.latest.as_ref().is_some_and(|latest| latest.payload.has(&event.id)) {
            return None;
        }
        if let Some(open) = self.latest.as_mut().filter(|latest| now < latest.closes_at) {
            match grouping {
                Grouping::Digest => open.payload.add(event.clone(), rule.entry.min_interval.is_some()),
                Grouping::Alike | Grouping::Alone => open.payload.join(&event.id),
            }
            open.more = open.more.saturating_add(event.count);
            return None;
        }
        let due_at = rule.due(event.kind, now, self.latest.as_ref().map(|latest| latest.due_at));
        let payload = match grouping {
            Grouping::Digest => Payload::digest_of(event.clone()),
            Grouping::Alike | Grouping::Alone => Payload::of(event.clone()),
        };
        let new = rule.notification(event, grouping, now, due_at, new_id());
        let next =
            Latest { id: new.id.clone(), due_at, closes_at: new.closes_at, payload, new: Some(new), more: 0 };
        self.latest.replace(next).and_then(Latest::change)
    }
}

impl Rule {
    fn grouping(&self, event: &Event) -> Grouping {
        Grouping::of(&self.entry, event.kind)
    }

    /// The group of an event, if others may be in it.
    fn known_group(&self, event: &Event) -> Option<GroupKey> {
        let grouping = self.grouping(event);
        let key = || GroupKey { entry: self.entry.name().to_owned(), group: grouping.group(event) };
        (grouping != Grouping::Alone).then(key)
    }

    /// A notification of one event.
    fn alone(&self, event: &Event, now: Timestamp, id: String) -> NotificationChange {
        let due_at = if event.kind == EventKind::Test { now } else { self.awake(event.kind, now) };
        let new = self.notification(event, Grouping::Alone, now, due_at, id);
        NotificationChange::New(NewNotification { closes_at: Timestamp::from_millis(0), ..new })
    }

    fn notification(
        &self,
        event: &Event,
        grouping: Grouping,
        now: Timestamp,
        due_at: Timestamp,
        id: String,
    ) -> NewNotification {
        NewNotification {
            id,
            event: event.id.clone(),
            key: GroupKey { entry: self.entry.name().to_owned(), group: grouping.group(event) },
            severity: severity_word(event.severity).to_owned(),
            payload: Payload::of(event.clone()).json(),
            count: event.count,
            due_at,
            // While it waits, more may be told with it.
            closes_at: if due_at > now { due_at } else { Timestamp::from_millis(0) },
            created_at: now,
        }
    }

    /// When a new notification of a group is due, after the group's latest one.
    fn due(&self, kind: EventKind, now: Timestamp, latest: Option<Timestamp>) -> Timestamp {
        if let Some(digest) = self.entry.digest {
            return self.awake(kind, later(now, digest.get()));
        }
        let interval = self.entry.min_interval.map_or(Duration::ZERO, |interval| interval.get());
        let earliest = latest
            .filter(|latest| *latest <= later(now, interval.saturating_add(MAX_QUIET)))
            .map_or(now, |latest| later(latest, interval).max(now));
        self.awake(kind, earliest)
    }

    /// The first time from `at` on that is not quiet for a kind of events.
    fn awake(&self, kind: EventKind, at: Timestamp) -> Timestamp {
        let quiet = self.quiet.as_ref().filter(|_| !self.entry.is_never_quiet_for(kind));
        // The store's times are from 1970 to 9999.
        let clock = ClockTime::from_millisecond(at.as_millis()).unwrap_or(ClockTime::MAX);
        let end = quiet.and_then(|quiet| quiet.end_of(clock));
        end.map_or(at, |end| Timestamp::from_millis(end.as_millisecond()).max(at))
    }
}

/// The quiet hours of an entry. The supervisor refuses a zone that there is not, so it must be of another version.
fn hours(entry: &NotificationEntry) -> Option<DailyHours> {
    let quiet = entry.quiet.as_ref()?;
    let zone = quiet.timezone.as_deref().unwrap_or("UTC").parse().unwrap_or_else(|error| {
        tracing::error!(entry = entry.name(), %error, "quiet hours are in UTC");
        Zone::utc()
    });
    let (from, to) = (quiet.from, quiet.to);
    DailyHours::new((from.hour(), from.minute()), (to.hour(), to.minute()), zone)
}

/// The word of a severity, as the store has it.
pub(super) fn severity_word(severity: EventSeverity) -> &'static str {
    match severity {
        EventSeverity::Info => "info",
        EventSeverity::Warning => "warning",
        EventSeverity::Critical => "critical",
    }
}

fn later(at: Timestamp, wait: Duration) -> Timestamp {
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(at.as_millis().saturating_add(wait))
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
