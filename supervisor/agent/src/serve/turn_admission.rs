//! A message to a session that may be in a turn.

use std::sync::Arc;

use talon_agent_settings::BusyMode;
use talon_store::Session;
use tokio::time::timeout;
use tonic::{Code, Status};

use super::service::Service;
use super::turn_stream::{self, Chunks};
use crate::agent::{CANCEL_WAIT, EarlierTurn, TurnRequest};
use crate::turns::{ChunkFilter, QueueOutcome};

/// How often it is tried to begin a turn while others are faster.
const TRIES: usize = 8;

impl Service {
    /// Begins a turn in a session, follows the one that the same message began before, or waits as `busy` says.
    ///
    /// # Errors
    /// As [`crate::agent::Agent::ask`], and RESOURCE_EXHAUSTED if too many messages wait.
    pub(super) async fn begin(
        &self,
        session: &Session,
        wish: TurnRequest,
        busy: BusyMode,
        filter: ChunkFilter,
    ) -> Result<Chunks, Status> {
        let id = session.id.to_string();
        let most = self.agent.setup().settings.agent.sessions.queue;
        let mut place = None;
        for _ in 0..TRIES {
            if let Some(earlier) = self.earlier(session, &wish).await? {
                return match earlier {
                    EarlierTurn::Running(running) => turn_stream::joined(&id, &running, filter),
                    EarlierTurn::Ended(turn, end) => Ok(turn_stream::ended(&id, turn, *end)),
                };
            }
            let is_waiting = place.is_some() || self.agent.turns.get(session.id).is_some();
            if is_waiting && place.is_none() && matches!(busy, BusyMode::Queue | BusyMode::Merge) {
                let mergeable = (busy == BusyMode::Merge && wish.may_be_merged())
                    .then(|| (wish.text.clone(), wish.origin.client_id.clone()));
                match self.agent.queues.wait(session.id, most, mergeable).await? {
                    QueueOutcome::Joined(running) => return turn_stream::joined(&id, &running, filter),
                    QueueOutcome::Next(next) => place = Some(next),
                }
            }
            if let Some(running) = self.agent.turns.get(session.id)
                && busy != BusyMode::Refuse
            {
                if busy == BusyMode::Interrupt {
                    running.cancel.cancel();
                    if timeout(CANCEL_WAIT, running.hub.wait_ended()).await.is_err() {
                        return Err(Status::unavailable(
                            "the session's turn was cancelled and is still ending: try again in a moment",
                        ));
                    }
                } else {
                    running.hub.wait_ended().await;
                }
            }
            let others = match &place {
                Some(place) if busy == BusyMode::Merge && wish.may_be_merged() => place.take_mergeable(),
                _ => Vec::new(),
            };
            let mut asked = wish.clone();
            for other in &others {
                // The same message, sent once more while it waited, is told of its turn and stands in it once.
                if !other.client_id.is_empty()
                    && (other.client_id == wish.origin.client_id
                        || asked.origin.merged.contains(&other.client_id))
                {
                    continue;
                }
                asked.text = format!("{}\n\n{}", asked.text, other.text);
                asked.origin.merged.extend(Some(other.client_id.clone()).filter(|id| !id.is_empty()));
            }
            match self.agent.ask(session, asked).await {
                Ok((running, following)) => {
                    others.into_iter().for_each(|message| message.joined(&running));
                    let following = following.filtered(filter);
                    return Ok(turn_stream::asked(following, running, wish.detached));
                }
                // The same message was faster, or another one. What was merged is told to ask again.
                Err(status) if status.code() == Code::AlreadyExists => {}
                Err(status) if status.code() == Code::FailedPrecondition => {
                    let running = self.agent.turns.get(session.id);
                    let is_same = running.is_none_or(|running| {
                        running.client_id().is_some_and(|id| id == wish.origin.client_id)
                    });
                    if !is_same && busy == BusyMode::Refuse {
                        return Err(status);
                    }
                }
                Err(status) => return Err(status),
            }
            // A turn that has ended leaves its place a moment later.
            tokio::task::yield_now().await;
        }
        Err(Status::aborted(
            "other messages to this session were faster again and again: ask again in a moment",
        ))
    }

    async fn earlier(&self, session: &Session, wish: &TurnRequest) -> Result<Option<EarlierTurn>, Status> {
        match wish.origin.client_id.as_str() {
            "" => Ok(None),
            client_id => Arc::clone(&self.agent).earlier_turn(session, client_id).await,
        }
    }
}
