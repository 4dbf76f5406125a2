//! What the event bus is told of an attempt.

use talon_event_bus::{Payload as BusPayload, excerpt};
use talon_proto::agent::NotificationUpdate;
use talon_store::{Notification, NotificationEnd};

use super::payload::Payload;

pub(super) fn sending(notification: &Notification) -> BusPayload {
    BusPayload::NotificationSending(update(notification, ""))
}

pub(super) fn ended(notification: &Notification, end: &NotificationEnd) -> BusPayload {
    match end {
        NotificationEnd::Delivered => BusPayload::NotificationDelivered(update(notification, "")),
        NotificationEnd::Refused(reason) | NotificationEnd::GivenUp(reason) => {
            BusPayload::NotificationFailed(update(notification, reason))
        }
        NotificationEnd::Retry { note, .. } => BusPayload::NotificationRetried(update(notification, note)),
        NotificationEnd::Released => {
            BusPayload::NotificationRetried(update(notification, "it was interrupted, and goes on later"))
        }
    }
}

fn update(notification: &Notification, reason: &str) -> NotificationUpdate {
    // One of another version has no kind and no summary here.
    let first =
        Payload::read(&notification.payload).ok().and_then(|payload| payload.events.into_iter().next());
    NotificationUpdate {
        notification: notification.id.clone(),
        entry: notification.entry.clone(),
        kind: first.as_ref().map(|event| event.kind.to_string()).unwrap_or_default(),
        severity: notification.severity.clone(),
        summary: first.map(|event| event.summary).unwrap_or_default(),
        attempt: notification.attempt,
        reason: excerpt(reason).0,
    }
}
