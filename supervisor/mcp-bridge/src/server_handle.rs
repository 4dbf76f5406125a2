//! What a call of a tool uses of a connected server.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::Peer;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::elicitation::Questions;
use crate::roots::Roots;
use crate::sampling::Sampling;
use crate::server::child::END_GRACE;
use crate::server::progress::Progress;

/// How long the exit of a process may take to be noticed after its pipes were closed.
pub(crate) const EXIT_REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// A connected server. Clones share it.
#[derive(Clone)]
pub(crate) struct ServerHandle {
    /// Sends requests to it.
    pub(crate) peer: Peer<RoleClient>,
    /// Receives the progress of its calls.
    pub(crate) progress: Progress,
    /// What it gets when it asks for roots.
    pub(crate) roots: Roots,
    /// Which call its questions are for.
    pub(crate) questions: Questions,
    /// The models that it may ask.
    pub(crate) sampling: Sampling,
    /// Whether it is a local process, which accepts every message or is about to end.
    pub(crate) is_process: bool,
    /// Whether it ended unexpectedly, so that the bridge ends with it.
    pub(crate) over: watch::Receiver<bool>,
}

impl ServerHandle {
    /// For a call that ended without a response: returns only if the server did not end, too. Otherwise the
    /// bridge exits before this returns, so that the supervisor gives the caller a retryable error instead of
    /// a refusal.
    pub(crate) async fn ended(&self) {
        // The call may notice it before the process monitor does, and before a server that does not read is
        // ended.
        let mut over = self.over.clone();
        let is_over = async { over.wait_for(|over| *over).await.is_ok() };
        if timeout(EXIT_REPORT_TIMEOUT + END_GRACE, is_over).await == Ok(true) {
            std::future::pending::<()>().await;
        }
    }
}
