//! A job that asks the agent: a turn of a conversation.

use std::sync::Arc;

use async_trait::async_trait;
use talon_agent_settings::{Money, PICOS_PER_MICRO};
use talon_schedule::{Job, Target};
use talon_store::{
    Error, ExportedSession, Occurrence, Overrides, Session, SessionId, SessionState, Timestamp,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use super::run_id::{conversation_id, run_id};
use super::target::{JobTarget, RunAnswer, RunOutcome};
use crate::agent::{Agent, CANCEL_WAIT, TurnRequest};
use crate::journal::{FoundTurn, TurnOutcome, find_turn, session_position};
use crate::turns::RunningTurn;

/// What the sender of a job's conversations begins with; the job's id follows. No user has such a name, since
/// it holds a colon. `agent.allow.senders` may restrict it.
const SENDER_PREFIX: &str = "schedule:";
/// The channel of a job's conversations.
const CHANNEL: &str = "schedule";
/// What a turn says that came to an answer.
const DONE: &str = "done";
/// What a turn says that somebody cancelled.
const CANCELLED: &str = "cancelled";

/// Asks the agent.
pub(crate) struct AskTarget {
    agent: Arc<Agent>,
}

/// A question, and where it is asked.
struct Question<'q> {
    session: SessionId,
    sender: String,
    text: &'q str,
    budget: Option<Money>,
    occurrence: &'q Occurrence,
}

/// What has become of the turn that was noted for a run.
enum TurnState {
    /// It was never begun.
    Absent,
    /// It has no end.
    Unfinished,
    Ended(EndedTurn),
}

/// A turn that is over: how, and what the person got.
struct EndedTurn {
    outcome: TurnOutcome,
    answer: String,
}

impl AskTarget {
    pub(crate) fn new(agent: Arc<Agent>) -> Arc<Self> {
        Arc::new(Self { agent })
    }
}

#[async_trait]
impl JobTarget for AskTarget {
    async fn run(&self, job: &Job, occurrence: &Occurrence, stop: &CancellationToken) -> RunOutcome {
        let Target::Ask { text, session, budget } = &job.target else {
            return RunOutcome::Failed { reason: "the job calls an action".to_owned(), retryable: false };
        };
        let question = Question {
            session: session.as_deref().map_or_else(|| run_id(occurrence), conversation_id),
            sender: sender(job.id.as_str()),
            text,
            budget: *budget,
            occurrence,
        };
        match self.ask(&question, stop).await {
            Ok(outcome) => outcome,
            Err(_) if self.agent.turns.is_ending() => RunOutcome::Interrupted,
            Err(reason) => RunOutcome::failed(reason),
        }
    }
}

impl AskTarget {
    /// Asks, or goes on with what was asked. The error is the reason, for a person.
    async fn ask(&self, question: &Question<'_>, stop: &CancellationToken) -> Result<RunOutcome, String> {
        let mut noted = question.occurrence.turn;
        while !stop.is_cancelled() {
            let session = self.session(question).await?;
            if let Some(turn) = noted {
                match self.turn_state(question, turn).await? {
                    TurnState::Ended(found) => return Ok(outcome_of(question, found)),
                    TurnState::Unfinished => return self.go_on(question, &session, turn, stop).await,
                    TurnState::Absent => {}
                }
            }
            if let Some(other) = self.agent.turns.get(session.id) {
                // Somebody talks in the same conversation.
                tokio::select! {
                    () = other.hub.wait_ended() => {}
                    () = stop.cancelled() => {}
                }
                continue;
            }
            let before = session_position(&*self.agent.sessions, session.id).await;
            let turn = before.map_err(|error| error.to_string())?.last_turn + 1;
            // Before it is asked, so that it is found again.
            let handle = question.occurrence.handle();
            let is_ours = self.agent.store.schedule().set_turn(&handle, &session.id.to_string(), turn).await;
            if !is_ours.map_err(|error| talon_error_chain::error_chain(&error))? {
                return Ok(RunOutcome::Lost);
            }
            noted = Some(turn);
            let request = TurnRequest {
                text: question.text.to_owned(),
                turn: Some(turn),
                micro_usd: question.budget.map(micro_usd),
                ..TurnRequest::default()
            };
            match self.agent.ask(&session, request).await {
                Ok((running, _)) => return self.follow(question, turn, &running, stop).await,
                // Another turn was faster: look again.
                Err(status) if matches!(status.code(), Code::Aborted | Code::FailedPrecondition) => {}
                Err(status) => return Err(status.message().to_owned()),
            }
        }
        Err("it was stopped before it was asked".to_owned())
    }

    /// Goes on with a turn that was interrupted, or follows one that runs.
    async fn go_on(
        &self,
        question: &Question<'_>,
        session: &Session,
        turn: u64,
        stop: &CancellationToken,
    ) -> Result<RunOutcome, String> {
        match self.agent.turn_of(session).await {
            Ok(Some((running, _))) => self.follow(question, turn, &running, stop).await,
            // It has ended meanwhile.
            Ok(None) => self.ended(question, turn).await,
            Err(status) => Err(status.message().to_owned()),
        }
    }

    /// Waits for the end of a turn, or ends it.
    async fn follow(
        &self,
        question: &Question<'_>,
        turn: u64,
        running: &RunningTurn,
        stop: &CancellationToken,
    ) -> Result<RunOutcome, String> {
        tokio::select! {
            () = running.hub.wait_ended() => {}
            () = stop.cancelled() => {
                running.cancel.cancel();
                // A slower one ends in the background.
                let _ended = timeout(CANCEL_WAIT, running.hub.wait_ended()).await;
            }
        }
        self.ended(question, turn).await
    }

    /// How a turn ended, by its journal.
    async fn ended(&self, question: &Question<'_>, turn: u64) -> Result<RunOutcome, String> {
        match self.turn_state(question, turn).await? {
            TurnState::Ended(found) => Ok(outcome_of(question, found)),
            _ if self.agent.turns.is_ending() => Ok(RunOutcome::Interrupted),
            _ => Err("its turn broke off: see the log of talon-agent".to_owned()),
        }
    }

    async fn turn_state(&self, question: &Question<'_>, turn: u64) -> Result<TurnState, String> {
        let found = find_turn(&*self.agent.sessions, question.session, turn).await;
        // A person may have begun another turn of this number before the question was asked.
        let found = found.map_err(|error| error.to_string())?.filter(|found| found.request == question.text);
        Ok(match found {
            None => TurnState::Absent,
            Some(FoundTurn { outcome: Some(outcome), answer, .. }) => {
                TurnState::Ended(EndedTurn { outcome, answer })
            }
            Some(_) => TurnState::Unfinished,
        })
    }

    /// The conversation, created if it is not there.
    async fn session(&self, question: &Question<'_>) -> Result<Session, String> {
        let sessions = &self.agent.sessions;
        let reason = |error: &Error| talon_error_chain::error_chain(error);
        if let Some(session) = sessions.get(question.session).await.map_err(|error| reason(&error))? {
            return Ok(session);
        }
        let now = Timestamp::now();
        let session = Session {
            id: question.session,
            sender: question.sender.clone(),
            channel: CHANNEL.to_owned(),
            state: SessionState::Active,
            active_model: None,
            overrides: Overrides::default(),
            metadata: std::collections::BTreeMap::new(),
            created_at: now,
            updated_at: now,
            next_sequence: 1,
        };
        let new = ExportedSession { session: session.clone(), messages: Vec::new() };
        match sessions.import(new).await {
            Ok(_) => Ok(session),
            // Another supervisor was faster.
            Err(Error::SessionExists(_)) => {
                let found = sessions.get(question.session).await.map_err(|error| reason(&error))?;
                found.ok_or_else(|| "its conversation was deleted at once".to_owned())
            }
            Err(error) => Err(reason(&error)),
        }
    }
}

/// The sender of a job's conversations.
pub(super) fn sender(job: &str) -> String {
    format!("{SENDER_PREFIX}{job}")
}

fn outcome_of(question: &Question<'_>, found: EndedTurn) -> RunOutcome {
    let EndedTurn { outcome: TurnOutcome { reason, message, .. }, answer } = found;
    if reason == DONE {
        let session = Some(question.session.to_string());
        return RunOutcome::Done(RunAnswer { text: answer, session, kept: None });
    }
    let retryable = reason != CANCELLED;
    RunOutcome::Failed { reason: if message.is_empty() { reason } else { message }, retryable }
}

fn micro_usd(money: Money) -> u64 {
    u64::try_from(money.picodollars() / PICOS_PER_MICRO).unwrap_or(u64::MAX)
}
