//! What was asked and decided, in the journal of its session, for those who follow it.

use std::sync::Arc;

use talon_error_chain::error_chain;
use talon_store::{Error, SessionId, Sessions};

use super::record::{ApprovalRecord, ApprovalState};
use crate::journal::SessionFact;

/// Notes approvals in their sessions.
pub(super) struct ApprovalJournal(pub(super) Arc<dyn Sessions>);

impl ApprovalJournal {
    /// Notes the state of an approval, once for each. A failure is logged: the decision itself is stored elsewhere.
    pub(super) async fn note(&self, record: &ApprovalRecord) {
        // That an approval was used concerns the loop alone.
        let Ok(id) = SessionId::new(&record.call.session) else { return };
        if record.state == ApprovalState::Taken {
            return;
        }
        let fact = SessionFact::approval(record.call.turn, &record.to_wire());
        match self.0.note(id, vec![fact.into_message()]).await {
            // It was noted before a restart, or its session is gone.
            Ok(_) | Err(Error::KeyExists { .. } | Error::NoSession(_)) => {}
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(target: "agent", approval = record.id, error, "those who follow the session are not told of an approval");
            }
        }
    }
}
