//! A scripted agent: a real server of `talon.agent.v1` on a socket, without a model behind it.

mod fixtures;
mod service;
mod state;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use talon_proto::agent::agent_server::AgentServer;
use talon_proto::agent::{Observation, ProviderState};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::UnixListenerStream;

use state::AgentState;
use talon_harness::Scratch;

pub use state::Step;

/// A running agent, and its files. Dropping it ends it.
pub struct FakeAgent {
    /// Where its socket is, and where a supervisor's would be.
    pub scratch: Scratch,
    world: Arc<AgentState>,
    task: JoinHandle<()>,
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
        *world.providers.lock() = fixtures::providers();
        *world.approvals.lock() = fixtures::approvals();
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
    pub fn on_ask(&self, asked: &str, steps: Vec<Step>) {
        self.world.turns.lock().insert(asked.to_owned(), steps);
    }

    /// Sets the answer to a client that attaches; without it no session is in a turn.
    pub fn on_attach(&self, steps: Vec<Step>) {
        let attached = (steps, self.world.decided.subscribe());
        *self.world.attached.lock() = Some(attached);
    }

    /// Sets its providers.
    pub fn set_providers(&self, providers: Vec<ProviderState>) {
        *self.world.providers.lock() = providers;
    }

    /// Has ghosts from now on: one that waits, and one that was dismissed.
    pub fn add_ghosts(&self) {
        *self.world.ghosts.lock() = fixtures::ghosts();
    }

    /// Refuses that many requests with observations, as an agent does that restarts.
    pub fn refuse_observations(&self, requests: u32) {
        *self.world.refused_observations.lock() = requests;
    }

    /// The observations that it took, in order.
    #[must_use]
    pub fn observed(&self) -> Vec<Observation> {
        self.world.observed.lock().clone()
    }

    /// How many requests with observations it will still refuse.
    #[must_use]
    pub fn refusals_left(&self) -> u32 {
        *self.world.refused_observations.lock()
    }

    /// Continues a turn that waits for a decision, as if there had been one.
    pub fn continue_turn(&self) {
        self.world.decided.send_modify(|times| *times += 1);
    }

    /// All requests so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.world.heard.lock().clone()
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

/// A path as text.
///
/// # Panics
/// When it is not UTF-8, which our paths are.
#[must_use]
pub fn text_of(path: &Path) -> String {
    path.to_str().expect("our paths are text").to_owned()
}
