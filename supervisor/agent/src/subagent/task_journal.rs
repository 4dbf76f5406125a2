//! The journal of a sub-agent's task: a session of its own in the store, from its first call to the end of its turn,
//! so that a task goes on where it was when the agent was killed.
//!
//! Its sender is no user's name, so nobody sees it in a list, a search, or an export of a sender's sessions.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use talon_error_chain::error_chain;
use talon_store::{
    Error, ExportedSession, PageRequest, Session, SessionFilter, SessionId, SessionState, Sessions, Timestamp,
};

use crate::driver::BuiltinCall;
use crate::journal::{Journal, StoreJournal, UnfinishedTurn, turn_entries};

/// The channel of all such sessions.
const CHANNEL: &str = "subagent";
/// What their sender begins with; the session of the turn follows. No user's name has a colon, and no number is
/// written so.
const SENDER: &str = "subagent:";
/// How many are deleted at once.
const PAGE: u32 = 100;

/// Whether a sender is a turn that gave out a task.
pub(crate) fn is_task_sender(sender: &str) -> bool {
    sender.starts_with(SENDER)
}

/// The journal of the task of this call, and what it has of it already. `None` if it cannot be stored: then the task
/// runs, and is begun anew after a kill.
pub(super) async fn open(
    sessions: &Arc<dyn Sessions>,
    call: &BuiltinCall,
) -> Option<(Arc<dyn Journal>, Option<UnfinishedTurn>)> {
    match open_or_fail(sessions, call).await {
        Ok(opened) => Some(opened),
        Err(error) => {
            tracing::warn!(target: "agent", session = %call.caller.session, error, "a sub-agent's task is not stored: it would not go on after a kill");
            None
        }
    }
}

async fn open_or_fail(
    sessions: &Arc<dyn Sessions>,
    call: &BuiltinCall,
) -> Result<(Arc<dyn Journal>, Option<UnfinishedTurn>), String> {
    let id = task_id(call);
    let failed = |error: Error| error_chain(&error);
    if sessions.get(id).await.map_err(failed)?.is_none() {
        let now = Timestamp::now();
        let session = Session {
            id,
            sender: sender(&call.caller.session),
            channel: CHANNEL.to_owned(),
            state: SessionState::Active,
            active_model: None,
            overrides: Default::default(),
            metadata: Default::default(),
            created_at: now,
            updated_at: now,
            next_sequence: 1,
        };
        sessions.import(ExportedSession { session, messages: Vec::new() }).await.map_err(failed)?;
    }
    let before = turn_entries(&**sessions, id, call.caller.turn).await.map_err(|error| error.why)?;
    Ok((Arc::new(StoreJournal::new(Arc::clone(sessions), id)), before))
}

/// The same for the same call of the same turn, however often the agent is started.
fn task_id(call: &BuiltinCall) -> SessionId {
    let mut digest = Sha256::new();
    digest.update(&call.caller.session);
    for number in [call.caller.turn, u64::from(call.iteration), call.place as u64] {
        digest.update(number.to_be_bytes());
    }
    let digest = digest.finalize();
    let bytes: [u8; 16] = std::array::from_fn(|place| digest[place]);
    SessionId::from_bytes(bytes)
}

fn sender(session: &str) -> String {
    format!("{SENDER}{session}")
}

/// Whether a task of a session's turns is stored.
///
/// # Errors
/// When the database cannot be read.
pub(crate) async fn has_tasks(sessions: &dyn Sessions, session: &str) -> Result<bool, Error> {
    Ok(!sessions.list(&tasks_of(session), &PageRequest::first(1)).await?.items.is_empty())
}

/// Deletes the tasks of a session's turns, once their results are in its journal.
///
/// # Errors
/// When the database cannot be written.
pub(crate) async fn delete_tasks(sessions: &dyn Sessions, session: &str) -> Result<(), Error> {
    loop {
        let found = sessions.list(&tasks_of(session), &PageRequest::first(PAGE)).await?.items;
        if found.is_empty() {
            return Ok(());
        }
        for task in found {
            sessions.delete(task.id).await?;
        }
    }
}

fn tasks_of(session: &str) -> SessionFilter {
    SessionFilter { sender: Some(sender(session)), ..SessionFilter::default() }
}
