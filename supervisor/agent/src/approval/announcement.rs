//! What the event bus is told of an approval.

use talon_event_bus::{EventBus, Payload, Subject};
use talon_proto::agent::ApprovalUpdate;

use super::record::{ApprovalRecord, ApprovalState};

pub(super) fn announce(bus: &EventBus, record: &ApprovalRecord) {
    let update = ApprovalUpdate {
        approval: record.id.clone(),
        about: match (&record.question, record.plan()) {
            (_, Some(_)) => "plan",
            (Some(_), None) => "question",
            (None, None) => "call",
        }
        .to_owned(),
        plugin: record.plugin.clone(),
        action: record.action.clone(),
        state: record.state_word().to_owned(),
        why: record.why.clone(),
        decided_by: record.decided_by.clone(),
        subagent: record.call.subagent.clone(),
        expires_unix_ms: record.expires_at.as_millis().unsigned_abs(),
    };
    let payload = match record.state {
        ApprovalState::Pending => Payload::ApprovalWaiting(update),
        ApprovalState::Approved | ApprovalState::Denied => Payload::ApprovalDecided(update),
        ApprovalState::Expired | ApprovalState::Cancelled => Payload::ApprovalEnded(update),
        // That an approval was used concerns the loop alone.
        ApprovalState::Taken => return,
    };
    bus.emit(Subject { sender: &record.sender, session: &record.call.session }, payload);
}
