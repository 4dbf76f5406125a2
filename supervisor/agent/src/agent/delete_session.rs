//! Deletes sessions: one, and those that are older than the operator wants.

use talon_agent_settings::SessionKeys;
use talon_error_chain::error_chain;
use talon_proto::agent::Operation;
use talon_store::{PageRequest, Session, SessionFilter, Timestamp};
use tokio::time::timeout;
use tonic::Status;

use super::Agent;
use super::limits::CANCEL_WAIT;
use super::session_metadata::OPEN_TURN;
use crate::driver::{CallApprover as _, Caller};
use crate::error_status::{no_session, store_error_status};
use crate::retention::{ExportError, ExportSource, ExportUsage};
use crate::subagent::{delete_tasks, is_task_sender};

/// The most old sessions that are deleted at once; the rest follow an hour later.
const MAX_DELETED: u32 = 500;

/// What is recorded of each.
const DELETE_OLD_SESSION: &str = "delete_old_session";

/// What became of an old session.
enum Removal {
    /// It was deleted, and written to this file before; empty if it was not to be.
    Deleted(String),
    /// It is used again, or gone.
    Kept,
}

/// Why an old session stays.
#[derive(Debug, thiserror::Error)]
enum RemovalError {
    #[error("it cannot be written before")]
    Export(#[from] ExportError),
    #[error("the agent has no directory of its own to write it to")]
    NoDirectory,
    #[error("{}", .0.message())]
    Delete(Status),
}

impl From<talon_store::Error> for RemovalError {
    fn from(error: talon_store::Error) -> Self {
        Self::Delete(store_error_status(&error))
    }
}

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
        self.remove_session(session).await
    }

    /// Deletes a session of which the caller has the slot.
    async fn remove_session(&self, session: &Session) -> Result<(), Status> {
        let id = session.id.to_string();
        let open = session.metadata.get(OPEN_TURN).and_then(|turn| turn.parse().ok());
        if let Some(turn) = open {
            self.approvals.turn_ended(&Caller { session: id.clone(), turn, ..Caller::default() }).await;
        }
        delete_tasks(&*self.sessions, &id).await.map_err(|error| store_error_status(&error))?;
        self.approvals.forget_session(&id).await.map_err(|error| store_error_status(&error))?;
        self.media.forget(&id).await.map_err(|error| store_error_status(&error))?;
        self.costs.forget(&id).await.map_err(|error| store_error_status(&error))?;
        // Last: what fails before is tried again with the session, and nothing is left without one.
        if !self.sessions.delete(session.id).await.map_err(|error| store_error_status(&error))? {
            return Err(no_session(&id));
        }
        // Once more: files may have come since. Who stores some now finds that the session is gone, and takes them away again.
        self.media.forget(&id).await.map_err(|error| store_error_status(&error))?;
        self.setup().environment.chain.ledgers().lock().close_session(&id);
        Ok(())
    }

    /// Deletes sessions that were not written to for as long as `agent.sessions.delete_after` says; none without it. Each is
    /// written to a file before, unless `agent.sessions.export` is off. Returns how many.
    pub(crate) async fn delete_old_sessions(&self, now: Timestamp) -> u64 {
        let keys = self.setup().settings.agent.sessions;
        let Some(after) = keys.delete_after else {
            self.retention.set(ExportUsage::default(), String::new());
            return 0;
        };
        let before = now.before(after.get());
        let filter = SessionFilter { updated_before: Some(before), ..SessionFilter::default() };
        let listed = async {
            let usage = match self.retention.directory() {
                Some(directory) if keys.export => directory.usage().await?,
                _ => ExportUsage::default(),
            };
            let old = self.sessions.list(&filter, &PageRequest::first(MAX_DELETED)).await?;
            Ok::<_, ExportError>((usage, old.items))
        };
        let (mut usage, old) = match listed.await {
            Ok(listed) => listed,
            Err(error) => {
                let error = error_chain(&error);
                tracing::warn!(error, "old sessions are not deleted");
                let problem = format!("old sessions are not deleted: {error}");
                self.retention.set(ExportUsage::default(), problem);
                return 0;
            }
        };
        let (mut deleted, mut failed, mut problem) = (0_u64, 0_u64, String::new());
        for session in old {
            let (id, sender) = (session.id.to_string(), session.sender.clone());
            let removal = match self.remove_old(&session, before, &keys, &mut usage).await {
                Ok(Removal::Kept) => continue,
                Ok(Removal::Deleted(export_file)) => {
                    deleted += 1;
                    self.retention.count_deleted();
                    let mut subject = format!("{id} of {sender}");
                    if !export_file.is_empty() {
                        subject = format!("{subject}, exported to {export_file}");
                    }
                    Operation { subject, outcome: "done".to_owned(), ..Operation::default() }
                }
                Err(error) => {
                    failed += 1;
                    let error = error_chain(&error);
                    if problem.is_empty() {
                        problem = format!("old sessions are not deleted, such as {id}: {error}");
                    }
                    // The log and the audit log have one; the others fail for the same reason each hour.
                    if failed > 1 {
                        continue;
                    }
                    tracing::warn!(session = id, error, "an old session is not deleted");
                    let (subject, outcome) = (format!("{id} of {sender}"), "failed".to_owned());
                    Operation { subject, outcome, problem: error, ..Operation::default() }
                }
            };
            let operation = Operation { verb: DELETE_OLD_SESSION.to_owned(), ..removal };
            self.operations.record(operation).await;
        }
        if deleted > 0 {
            let exported = self.retention.directory().filter(|_| keys.export);
            let exports = exported.map(|directory| directory.display()).unwrap_or_default();
            tracing::info!(
                sessions = deleted,
                after = %after,
                exports,
                "sessions were deleted: nothing was written to them for so long (agent.sessions.delete_after)"
            );
        }
        if failed > 1 {
            tracing::warn!(sessions = failed, "old sessions are not deleted");
        }
        self.retention.set(usage, problem);
        deleted
    }

    /// Writes a session to a file, and deletes it, unless somebody uses it.
    async fn remove_old(
        &self,
        listed: &Session,
        before: Timestamp,
        keys: &SessionKeys,
        usage: &mut ExportUsage,
    ) -> Result<Removal, RemovalError> {
        let waits = self.approvals.pending(Some(&listed.id.to_string())).await > 0;
        // In a turn, or its sender is in so many that it is used in a moment.
        let Ok(_place) = self.turns.reserve(listed.id, &listed.sender, &self.metrics) else {
            return Ok(Removal::Kept);
        };
        // It may have been used since it was listed.
        let Some(session) = self.sessions.get(listed.id).await? else { return Ok(Removal::Kept) };
        if waits || session.updated_at >= before {
            return Ok(Removal::Kept);
        }
        let mut export_file = String::new();
        // A task's session is a part of a turn that was killed, and no conversation.
        if keys.export && !is_task_sender(&session.sender) {
            let directory = self.retention.directory().ok_or(RemovalError::NoDirectory)?;
            let key_values = self.store.key_values();
            let source = ExportSource { sessions: &*self.sessions, key_values: &*key_values };
            directory.write(&source, &session, usage, keys.export_bytes).await?;
            export_file = directory.file_of(session.id);
        }
        match self.remove_session(&session).await {
            Ok(()) => Ok(Removal::Deleted(export_file)),
            Err(status) => Err(RemovalError::Delete(status)),
        }
    }
}
