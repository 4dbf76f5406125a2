//! Which events are one.

use sha2::{Digest as _, Sha256};
use talon_extensions::contract::Event;
use talon_extensions::{EventKind, NotificationEntry};

/// Fields that say which of several like events it is and why, or count up: events that differ only in these are alike.
const OWN_FIELDS: [&str; 10] =
    ["approval", "run", "reason", "spent", "restarts", "deaths", "count", "first", "last", "numbers"];
/// The group of a digest.
const DIGEST: &str = "digest";
/// The group of the notification that stands for those that had no room.
pub(super) const GAP: &str = "gap";

/// How an event goes to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grouping {
    /// By itself.
    Alone,
    /// With like ones, at most one in `min_interval`.
    Alike,
    /// With all that come while the digest is open.
    Digest,
}

impl Grouping {
    /// How events of a kind go to an entry. What somebody waits for, or asked for, always goes by itself.
    pub(super) fn of(entry: &NotificationEntry, kind: EventKind) -> Self {
        match kind {
            EventKind::Answer | EventKind::Test => Self::Alone,
            _ if entry.digest.is_some() => Self::Digest,
            _ if entry.min_interval.is_some() => Self::Alike,
            _ => Self::Alone,
        }
    }

    /// The group of an event.
    pub(super) fn group(self, event: &Event) -> String {
        match self {
            Self::Alone => group_of_one(&event.id),
            Self::Alike => format!("alike {}", short(&alike_text(event))),
            Self::Digest => DIGEST.to_owned(),
        }
    }
}

/// The group of an event that goes by itself.
pub(super) fn group_of_one(event: &str) -> String {
    format!("one {}", short(event))
}

/// Whether two events are of the same kind and fields.
pub(super) fn is_alike(one: &Event, other: &Event) -> bool {
    one.kind == other.kind && alike_text(one) == alike_text(other)
}

/// Kind and fields as a text; each piece with its length, so that none can be shifted into the next.
pub(super) fn alike_text(event: &Event) -> String {
    let mut text = event.kind.as_str().to_owned();
    for (name, value) in event.fields.iter().filter(|(name, _)| !OWN_FIELDS.contains(&name.as_str())) {
        text.push_str(&format!("\n{} {name} {} {value}", name.len(), value.len()));
    }
    text
}

fn short(text: &str) -> String {
    // 128 bits: chance makes no two alike, and nobody gains by it.
    hex::encode(&Sha256::digest(text)[..16])
}
