//! The state of the scripted agent, and the steps of its turns.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_proto::agent::{Approval, AskRequest, Chunk, Ghost, Observation, ProviderState, Started, chunk};
use tokio::sync::{mpsc, watch};
use tonic::Status;

use super::fixtures;

/// Chunks that are buffered; no test sends more ahead.
const AHEAD: usize = 64;

/// One step of a turn.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a test has a few of them")]
pub enum Step {
    /// Sends this chunk.
    Say(chunk::Kind),
    /// Waits for a decision.
    Decided,
    /// Waits until the turn is cancelled.
    Cancelled,
}

/// The agent's state.
#[derive(Default)]
pub(super) struct AgentState {
    /// The questions, and the steps that answer them.
    pub(super) turns: Mutex<HashMap<String, Vec<Step>>>,
    /// The steps for a client that attaches, and the decisions since they were set: the client may have
    /// decided first.
    pub(super) attached: Mutex<Option<(Vec<Step>, watch::Receiver<u32>)>>,
    pub(super) providers: Mutex<Vec<ProviderState>>,
    pub(super) approvals: Mutex<Vec<Approval>>,
    /// None unless a test wants some: a chat shows what waits.
    pub(super) ghosts: Mutex<Vec<Ghost>>,
    /// How many requests with observations are still refused, and the observations of the others.
    pub(super) refused_observations: Mutex<u32>,
    pub(super) observed: Mutex<Vec<Observation>>,
    /// All requests, in order.
    pub(super) heard: Mutex<Vec<String>>,
    /// How many decisions and cancellations there were.
    pub(super) decided: watch::Sender<u32>,
    pub(super) cancelled: watch::Sender<u32>,
}

impl AgentState {
    pub(super) fn record(&self, what: impl std::fmt::Display) {
        self.heard.lock().push(what.to_string());
    }

    /// Plays a turn; it ends early when the client is gone.
    pub(super) fn play(
        self: &Arc<Self>,
        steps: Vec<Step>,
        mut decided: watch::Receiver<u32>,
    ) -> mpsc::Receiver<Result<Chunk, Status>> {
        let (says, said) = mpsc::channel(AHEAD);
        let world = Arc::clone(self);
        let mut cancelled = world.cancelled.subscribe();
        tokio::spawn(async move {
            for step in steps {
                let goes_on = match step {
                    Step::Say(kind) => {
                        // A pending approval can also be listed.
                        if let chunk::Kind::Approval(approval) = &kind {
                            world.approvals.lock().push(approval.clone());
                        }
                        says.send(Ok(Chunk { kind: Some(kind) })).await.is_ok()
                    }
                    Step::Decided => decided.changed().await.is_ok(),
                    Step::Cancelled => tokio::select! {
                        changed = cancelled.changed() => changed.is_ok(),
                        () = says.closed() => {
                            world.record("LetGo");
                            false
                        }
                    },
                };
                if !goes_on {
                    return;
                }
            }
        });
        said
    }

    pub(super) fn steps(&self, request: &AskRequest) -> Result<Vec<Step>, Status> {
        let turns = self.turns.lock();
        let steps = turns.get(&request.text).cloned();
        let steps =
            steps.ok_or_else(|| Status::invalid_argument("this test's agent has nothing to say to that"))?;
        let session_id = match request.session_id.as_str() {
            "" => fixtures::SESSION.to_owned(),
            id => id.to_owned(),
        };
        let started = Started { session_id, turn: 1, correlation_id: "corr-1".to_owned(), repeated: false };
        Ok(std::iter::once(Step::Say(chunk::Kind::Started(started))).chain(steps).collect())
    }
}
