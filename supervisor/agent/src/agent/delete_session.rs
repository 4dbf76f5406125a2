//! Deletes sessions: one, and those that are older than the operator wants.

use std::time::Duration;

use talon_store::{PageRequest, Session, SessionFilter, Timestamp};
use tokio::time::timeout;
use tonic::Status;

use super::Agent;
use super::limits::CANCEL_WAIT;
use super::session_metadata::OPEN_TURN;
use crate::driver::{CallApprover as _, Caller};
use crate::error_status::{no_session, store_error_status};
use crate::subagent::delete_tasks;

/// The most old sessions that are deleted at once; the rest follow an hour later.
const MAX_DELETED: u32 = 500;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Agent {
    /// Deletes a session with its turn, its costs and its rules.
    ///
    /// # Errors
    /// UNAVAILABLE if its turn does not end in time.
    pub(crate) async fn delete_session(&self, session: &Session) -> Result<(), Status> {
        if let Some(running) = self.turns.get(session.id) {
            running.cancel.cancel();
            if timeout(CANCEL_WAIT, running.hub.wait_ended()).await.is_err() {
                return Err(Status::unavailable(format!(
                    "the turn of session {} was cancelled and is still ending: try again in a moment",
                    session.id
                )));
            }
        }
        // Its slot stays taken until it is deleted, so that no turn starts in the meantime.
        let _place = self.turns.reserve(session.id, &session.sender, &self.metrics)?;
        let id = session.id.to_string();
        let open = session.metadata.get(OPEN_TURN).and_then(|turn| turn.parse().ok());
        if !self.sessions.delete(session.id).await.map_err(|error| store_error_status(&error))? {
            return Err(no_session(&id));
        }
        if let Some(turn) = open {
            self.approvals.turn_ended(&Caller { session: id.clone(), turn, ..Caller::default() }).await;
        }
        delete_tasks(&*self.sessions, &id).await.map_err(|error| store_error_status(&error))?;
        self.approvals.forget_session(&id).await.map_err(|error| store_error_status(&error))?;
        self.media.forget(&id).await.map_err(|error| store_error_status(&error))?;
        self.costs.forget(&id).await.map_err(|error| store_error_status(&error))?;
        self.setup().environment.chain.ledgers().lock().close_session(&id);
        Ok(())
    }

    /// Deletes sessions that were not written to for as long as `agent.sessions.retention_days` says; none without
    /// it. Returns how many.
    pub(crate) async fn delete_old_sessions(&self, now: Timestamp) -> u64 {
        let Some(days) = self.setup().settings.agent.sessions.retention_days else { return 0 };
        let updated_before = Some(now.before(DAY * days));
        let filter = SessionFilter { updated_before, ..SessionFilter::default() };
        let old = match self.sessions.list(&filter, &PageRequest::first(MAX_DELETED)).await {
            Ok(page) => page.items,
            Err(error) => {
                let error = talon_error_chain::error_chain(&error);
                tracing::warn!(error, "old sessions cannot be listed");
                return 0;
            }
        };
        let mut deleted = 0;
        for session in old {
            let waits = self.approvals.pending(Some(&session.id.to_string())).await > 0;
            if waits || self.turns.get(session.id).is_some() {
                continue;
            }
            match self.delete_session(&session).await {
                Ok(()) => deleted += 1,
                Err(status) => {
                    tracing::warn!(session = %session.id, error = status.message(), "an old session is not deleted");
                }
            }
        }
        if deleted > 0 {
            tracing::info!(
                sessions = deleted,
                days,
                "sessions were deleted: nothing was written to them for so long (agent.sessions.retention_days)"
            );
        }
        deleted
    }
}
