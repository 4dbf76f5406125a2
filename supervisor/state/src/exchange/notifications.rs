//! Notifications as YAML: a map of their ids and of what the agent stores of each, as JSON. One that was not
//! delivered yet is given up in another store, where a person may have it tried again: nobody is told twice
//! because of a copy.

use talon_child::yaml::YamlWriter;
use talon_store::{Notification, NotificationState, Timestamp};

use super::entries::{self, SeenKeys};
use super::node::{Node, Problem};

/// Why a notification that was not delivered yet is given up.
const COPIED: &str = "it was not delivered yet when it was exported";

pub(super) fn write(yaml: &mut YamlWriter, notification: Notification) {
    let notification = copied(notification);
    let json = serde_json::to_vec(&notification).expect("a notification has texts and numbers only");
    yaml.bytes(&notification.id, &json);
}

/// Reads a notification. Returns its name for reports, and the notification.
pub(super) fn read(key: Node, value: Node, seen: &mut SeenKeys) -> (String, Result<Notification, Problem>) {
    let (record, entry) = entries::read(key, value, seen);
    let checked = entry.and_then(|(at, written, value)| {
        let wrong = |reason: &str| Problem { at, reason: reason.to_owned() };
        let notification: Notification = serde_json::from_slice(&value)
            .map_err(|error| wrong(&format!("is no notification as JSON in a text: {error}")))?;
        if notification.id != written.as_str() {
            return Err(wrong("the notification says another id than its key"));
        }
        Ok(copied(notification))
    });
    (record, checked)
}

/// Whether two are the same, whoever delivered them.
pub(super) fn are_same(there: &Notification, new: &Notification) -> bool {
    copied(there.clone()) == copied(new.clone())
}

/// What a notification is elsewhere.
fn copied(notification: Notification) -> Notification {
    let never = Timestamp::from_millis(0);
    let mut copy = Notification { holder: None, lease_until: never, epoch: 0, revision: 0, ..notification };
    if !copy.state.is_finished() {
        copy.state = NotificationState::GivenUp;
        copy.ended_at = Some(copy.due_at);
        copy.note = COPIED.to_owned();
    }
    copy
}
