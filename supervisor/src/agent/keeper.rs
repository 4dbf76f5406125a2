//! Supervises `talon-agent` across its restarts.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::time::Duration;

use talon_plugin::{Events, Link};
use talon_proto::agent::AttachClient;
use talon_proto::state::Open;
use talon_sanitize::Sanitized;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;

use super::doorway::Doorway;
use super::told::{Agent, Client, Told};
use crate::service::{self, Held, KeeperState, KeeperStatus, said};

/// Supervises `talon-agent`. Clones share state.
#[derive(Clone)]
pub struct Keeper {
    pub(super) held: Held<Agent>,
}

impl Keeper {
    /// A supervisor without a process. It gets one when it is registered as a service's link.
    #[must_use]
    pub fn new(open: Open, events: Events) -> Self {
        Self { held: Held::new(Agent::new(open), events) }
    }

    /// The status of the service.
    #[must_use]
    pub fn status(&self) -> KeeperStatus {
        self.held.status()
    }

    /// The agent's latest report about itself; `None` until there is one.
    pub(crate) fn told(&self) -> Option<Told> {
        self.held.kind().told()
    }

    /// Sets the configuration that the agent receives: the encoded settings. A running process receives it at
    /// once.
    pub fn configure(&self, handed: Vec<u8>) {
        self.held.kind().set(handed);
        self.held.changed();
    }

    /// Records that it cannot run without a change by the operator.
    pub(crate) fn failed(&self, why: &str) {
        let problem = said(why);
        tracing::error!(%problem, "the agent does not run");
        self.held.note(|status| (status.state, status.problem) = (KeeperState::Failed, Some(problem)));
    }

    /// Sets what serves its connections to the plugins.
    pub(crate) fn open_door(&self, way: Doorway) {
        self.held.kind().door.open(way);
        self.held.changed();
    }

    /// Disconnects it from the plugins. Requests in flight may finish within this time.
    pub(crate) async fn close_door(&self, within: Duration) {
        self.held.kind().door.close(within).await;
    }

    /// Lets it run again after a stop.
    pub(crate) fn reopen(&self) {
        self.held.reopen();
    }

    /// Cancelled when the current process is to end.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.held.closing()
    }

    /// Whether it serves or is about to; false if it cannot be started at all.
    pub(crate) fn can_serve(&self) -> bool {
        self.held.status().state != KeeperState::Failed
    }

    /// Passes a client's connection to it. The connection is closed if too many wait.
    pub(super) fn attach(
        &self,
        about: AttachClient,
        connection: OwnedFd,
        taken: Option<oneshot::Sender<()>>,
    ) -> io::Result<()> {
        let full = |_| io::Error::other("too many clients wait for the agent");
        self.held.kind().attach(Client { about, connection, taken }).map_err(full)?;
        self.held.changed();
        Ok(())
    }

    /// A channel for the supervisor's own requests, such as health checks. Requests wait until it runs. Must
    /// be called within a tokio runtime.
    pub(crate) fn channel(&self) -> Channel {
        let keeper = self.clone();
        service::channel(move || {
            let (ours, theirs) = net::UnixStream::pair()?;
            keeper.attach(ourselves(), theirs.into(), None)?;
            Ok(ours)
        })
    }
}

/// The supervisor as a client of the agent: it only reads metrics and status.
fn ourselves() -> AttachClient {
    let uid = rustix::process::geteuid().as_raw();
    AttachClient {
        uid,
        gid: rustix::process::getegid().as_raw(),
        pid: std::process::id(),
        // Neither a user's name nor a number, so this client sees no user's sessions.
        sender: "uid:talon".to_owned(),
        role: "operate".to_owned(),
        origin: "program".to_owned(),
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("held", &self.held).finish()
    }
}

impl Link for Keeper {
    fn started(&self, control: OwnedFd, pid: u32, uid: u32) {
        self.held.started(control, pid, uid);
    }

    fn stopping(&self) {
        self.held.stopping();
    }

    fn ended(&self, how: &Sanitized, again_in: Option<Duration>) {
        self.held.ended(how, again_in);
    }
}
