//! A scripted agent: a real server of `talon.agent.v1` on a socket, without a model behind it.

mod fixtures;
mod service;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use talon_proto::agent::agent_server::AgentServer;
use talon_proto::agent::{Approval, AskRequest, Chunk, ProviderState, Started, chunk};
use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::Status;

use crate::scratch::Scratch;

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

/// A running agent, and its files. Dropping it ends it.
pub struct FakeAgent {
    /// Where its socket is, and where a supervisor's would be.
    pub scratch: Scratch,
    world: Arc<AgentState>,
    task: JoinHandle<()>,
}

/// The agent's state.
#[derive(Default)]
struct AgentState {
    /// The questions, and the steps that answer them.
    turns: Mutex<HashMap<String, Vec<Step>>>,
    /// The steps for a client that attaches, and the decisions since they were set: the client may have decided first.
    attached: Mutex<Option<(Vec<Step>, watch::Receiver<u32>)>>,
    providers: Mutex<Vec<ProviderState>>,
    approvals: Mutex<Vec<Approval>>,
    /// All requests, in order.
    heard: Mutex<Vec<String>>,
    /// How many decisions and cancellations there were.
    decided: watch::Sender<u32>,
    cancelled: watch::Sender<u32>,
}

impl FakeAgent {
    /// Starts an agent.
    ///
    /// # Panics
    /// When its socket cannot be bound.
    #[must_use]
    pub fn start() -> Self {
        let scratch = Scratch::new();
        let world = Arc::new(AgentState::default());
        *world.providers.lock().expect("no holder panics") = fixtures::providers();
        *world.approvals.lock().expect("no holder panics") = fixtures::approvals();
        let listener =
            UnixListener::bind(scratch.join("agent.sock")).expect("a scratch directory takes a socket");
        let service = AgentServer::new(service::Service { world: Arc::clone(&world) });
        let serving = tonic::transport::Server::builder()
            .serve_with_incoming(service, UnixListenerStream::new(listener));
        let task = tokio::spawn(async move {
            // It ends with the test.
            let _ = serving.await;
        });
        Self { scratch, world, task }
    }

    /// Sets the answer to this question.
    ///
    /// # Panics
    /// Never: no holder of the lock panics.
    pub fn on_ask(&self, asked: &str, steps: Vec<Step>) {
        self.world.turns.lock().expect("no holder panics").insert(asked.to_owned(), steps);
    }

    /// Sets the answer to a client that attaches; without it no session is in a turn.
    ///
    /// # Panics
    /// Never: no holder of the lock panics.
    pub fn on_attach(&self, steps: Vec<Step>) {
        let attached = (steps, self.world.decided.subscribe());
        *self.world.attached.lock().expect("no holder panics") = Some(attached);
    }

    /// Sets its providers.
    ///
    /// # Panics
    /// Never: no holder of the lock panics.
    pub fn set_providers(&self, providers: Vec<ProviderState>) {
        *self.world.providers.lock().expect("no holder panics") = providers;
    }

    /// Continues a turn that waits for a decision, as if there had been one.
    pub fn continue_turn(&self) {
        self.world.decided.send_modify(|times| *times += 1);
    }

    /// All requests so far, in order.
    ///
    /// # Panics
    /// Never: no holder of the lock panics.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.world.heard.lock().expect("no holder panics").clone()
    }

    /// Where its supervisor would listen, for `--socket`.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.scratch.join("host.sock")
    }

    /// Its own socket.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.scratch.join("agent.sock")
    }

    /// Creates a file for the test.
    #[must_use]
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        self.scratch.write(name, text)
    }
}

impl Drop for FakeAgent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl AgentState {
    fn record(&self, what: impl std::fmt::Display) {
        self.heard.lock().expect("no holder panics").push(what.to_string());
    }

    /// Plays a turn; it ends early when the client is gone.
    fn play(
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
                            world.approvals.lock().expect("no holder panics").push(approval.clone());
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

    fn steps(&self, request: &AskRequest) -> Result<Vec<Step>, Status> {
        let turns = self.turns.lock().expect("no holder panics");
        let steps = turns.get(&request.text).cloned();
        let steps =
            steps.ok_or_else(|| Status::invalid_argument("this test's agent has nothing to say to that"))?;
        let session_id = match request.session_id.as_str() {
            "" => fixtures::SESSION.to_owned(),
            id => id.to_owned(),
        };
        let started = Started { session_id, turn: 1, correlation_id: "corr-1".to_owned() };
        Ok(std::iter::once(Step::Say(chunk::Kind::Started(started))).chain(steps).collect())
    }
}

/// A path as text.
///
/// # Panics
/// When it is not UTF-8, which our paths are.
#[must_use]
pub fn text_of(path: &Path) -> String {
    path.to_str().expect("our paths are text").to_owned()
}
