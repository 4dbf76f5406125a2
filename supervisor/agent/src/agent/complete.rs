//! Turns of no session: nothing of them is stored, and their end is told only after what the next request needs is kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use talon_llm::route::cost::UsageTotals;
use talon_proto::agent::Started;
use talon_proto::agent::chunk::Kind;
use talon_store::{Overrides, Session, SessionId, SessionState, Timestamp};
use tonic::Status;
use tracing::Instrument as _;

use super::Agent;
use super::spec::{SessionPlace, TurnRequest, spec};
use crate::driver::{Caller, HandedOverCalls};
use crate::error_status::journal_error_status;
use crate::journal::{JournalEntry, session_position, turn_entries};
use crate::stateless::{CachedTurn, PassingImages};
use crate::tool_result::CallOutcome;
use crate::turns::{RunningTurn, Subscription};

impl Agent {
    /// Starts a turn with this number for a sender on a channel, and follows it from the first chunk.
    ///
    /// # Errors
    /// As [`RunningTurns::reserve`](crate::turns::RunningTurns::reserve).
    pub(crate) async fn complete(
        self: &Arc<Self>,
        sender: &str,
        channel: String,
        turn: u64,
        request: TurnRequest,
        images: Arc<PassingImages>,
    ) -> Result<(Arc<RunningTurn>, Subscription), Status> {
        let now = Timestamp::now();
        let session = Session {
            id: SessionId::generate(),
            sender: sender.to_owned(),
            channel,
            state: SessionState::Active,
            active_model: None,
            overrides: Overrides::default(),
            metadata: Default::default(),
            created_at: now,
            updated_at: now,
            next_sequence: 0,
        };
        let slot = self.turns.reserve(session.id, sender, &self.metrics)?;
        slot.running.is_turn(turn);
        let setup = self.setup();
        let id = session.id.to_string();
        let passing = PassingSession { agent: Arc::clone(self), id: id.clone() };
        self.costs.begin_passing(&id);
        setup.environment.chain.ledgers().lock().open_session(&id, UsageTotals::default());
        let place = SessionPlace { journal: None, plan: None, listener: Arc::clone(&slot.running.hub) as _ };
        let spec = spec(&setup, &session, &slot.running, request, place, None).await;
        let started = Kind::Started(Started {
            session_id: id.clone(),
            turn,
            correlation_id: slot.running.correlation_id.clone(),
            repeated: false,
        });
        let running = Arc::clone(&slot.running);
        let following = running.hub.follow(|_| vec![started])?;
        let mut environment = setup.environment.clone();
        environment.images = Arc::clone(&images) as _;
        let span = tracing::info_span!("turn", correlation_id = running.correlation_id, session = id, turn);
        let agent = Arc::clone(self);
        let turn = async move {
            let caller = spec.caller.clone();
            let end = agent.runner.run(&environment, spec).await;
            environment.approver.turn_ended(&caller).await;
            if let Some(handed_over) = end.handed_over {
                agent.keep(&caller, handed_over, &images);
            }
            if end.tool_calls > 0 {
                agent.forget_passing(&caller).await;
            }
            drop(passing);
        };
        self.turns.spawn(slot, turn.instrument(span));
        Ok((running, following))
    }

    /// The ids of the calls with which the last turn of a session ended, for its client to make.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(crate) async fn handed_over(&self, session: &Session) -> Result<BTreeSet<String>, Status> {
        let position = session_position(&*self.sessions, session.id).await;
        let last = position.map_err(|error| journal_error_status(&error))?.last_turn;
        let turn = turn_entries(&*self.sessions, session.id, last).await;
        let entries =
            turn.map_err(|error| journal_error_status(&error))?.map(|turn| turn.entries).unwrap_or_default();
        let (mut calls, mut handed) = (Vec::new(), BTreeSet::new());
        for entry in entries {
            match entry {
                JournalEntry::Answered { answer, .. } => calls = answer.calls,
                JournalEntry::CallsFinished(results) => {
                    let made = calls.iter().zip(&results);
                    let of_client = made.filter(|(_, result)| result.outcome == CallOutcome::HandedOver);
                    handed = of_client.map(|(call, _)| call.id.clone()).collect();
                }
                _ => {}
            }
        }
        Ok(handed)
    }

    /// Keeps what the client does not know of the turn.
    fn keep(&self, caller: &Caller, handed_over: HandedOverCalls, images: &PassingImages) {
        let HandedOverCalls { calls, messages } = handed_over;
        let images = images.bytes_of(crate::driver::images(&messages));
        self.turn_cache.add(&caller.sender, &calls, CachedTurn { messages, images });
    }

    /// Deletes what calls of the turn stored under its name: tasks of sub-agents, and rules for its session.
    async fn forget_passing(&self, caller: &Caller) {
        if let Ok(id) = SessionId::new(&caller.session) {
            self.delete_tasks(id).await;
        }
        if let Err(error) = self.approvals.forget_session(&caller.session).await {
            let error = talon_error_chain::error_chain(&error);
            tracing::warn!(session = caller.session, error, "rules of a turn that is over are not deleted");
        }
    }
}

/// What is counted for a session while its one turn runs.
struct PassingSession {
    agent: Arc<Agent>,
    id: String,
}

impl Drop for PassingSession {
    fn drop(&mut self) {
        self.agent.costs.end_passing(&self.id);
        self.agent.setup().environment.chain.ledgers().lock().close_session(&self.id);
    }
}
