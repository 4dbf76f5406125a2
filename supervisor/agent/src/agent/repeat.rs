//! A question that a client asks again, under the same name.

use std::sync::Arc;

use talon_proto::agent::chunk::Kind;
use talon_store::Session;
use tonic::Status;

use super::Agent;
use crate::error_status::journal_error_status;
use crate::journal::{find_request, recorded_end};
use crate::turns::RunningTurn;

/// How often it is looked again at a turn that ends in the meantime.
const LOOKS: usize = 3;

/// What became of a question that was asked before.
pub(crate) enum EarlierTurn {
    /// Its turn runs, or goes on.
    Running(Arc<RunningTurn>),
    /// Its turn is over: its number, and its last chunk.
    Ended(u64, Box<Kind>),
}

impl Agent {
    /// What became of the question that a client gave this name; `None` if it was not asked. An interrupted turn goes on.
    ///
    /// # Errors
    /// As [`Agent::ask`].
    pub(crate) async fn earlier_turn(
        self: &Arc<Self>,
        session: &Session,
        client_id: &str,
    ) -> Result<Option<EarlierTurn>, Status> {
        let failed = |error| journal_error_status(&error);
        for _ in 0..LOOKS {
            if let Some(running) = self.turns.get(session.id) {
                if running.client_id() == Some(client_id) {
                    return Ok(Some(EarlierTurn::Running(running)));
                }
                // One that somebody else goes on with has no name; a place that is only just taken has no number.
                running.known_turn().await;
            }
            let found = find_request(&*self.sessions, session, client_id).await.map_err(failed)?;
            let Some((request, turn)) = found else { return Ok(None) };
            let end = recorded_end(&*self.sessions, session, &request, turn).await.map_err(failed)?;
            if let Some(end) = end {
                return Ok(Some(EarlierTurn::Ended(turn, Box::new(end))));
            }
            if let Some((running, _)) = self.turn_of(session).await?
                && running.known_turn().await == turn
            {
                return Ok(Some(EarlierTurn::Running(running)));
            }
        }
        Err(Status::unavailable("the turn of this message is ending: ask again in a moment"))
    }
}
