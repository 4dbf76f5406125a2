//! Our hold on `talon-agent`, across its restarts.

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

/// The supervisor's hold on `talon-agent`. Clones are the same.
#[derive(Clone)]
pub struct Keeper {
    pub(super) held: Held<Agent>,
}

impl Keeper {
    /// Without a process yet: it gets one by being given to the registry as a service's link.
    #[must_use]
    pub fn new(open: Open, events: Events) -> Self {
        Self { held: Held::new(Agent::new(open), events) }
    }

    /// How it is.
    #[must_use]
    pub fn status(&self) -> KeeperStatus {
        self.held.status()
    }

    /// How it is, as it said itself when it was last asked; `None` while it did not.
    pub(crate) fn told(&self) -> Option<Told> {
        self.held.kind().told()
    }

    /// What it is told from now on: the bytes of what a supervisor hands over. A process that runs is told at once.
    pub fn configure(&self, handed: Vec<u8>) {
        self.held.kind().set(handed);
        self.held.changed();
    }

    /// It cannot run before somebody changes something.
    pub(crate) fn failed(&self, why: &str) {
        let problem = said(why);
        tracing::error!(%problem, "the agent does not run");
        self.held.note(|status| (status.state, status.problem) = (KeeperState::Failed, Some(problem)));
    }

    /// Has it reach the plugins this way.
    pub(crate) fn open_door(&self, way: Doorway) {
        self.held.kind().door.open(way);
        self.held.changed();
    }

    /// Lets it reach nothing any more. Requests under way may finish within this time.
    pub(crate) async fn close_door(&self, within: Duration) {
        self.held.kind().door.close(within).await;
    }

    /// Lets it run again after it was stopped.
    pub(crate) fn reopen(&self) {
        self.held.reopen();
    }

    /// Cancelled when the process that runs now is to end.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.held.closing()
    }

    /// Whether it serves, or will in a moment: not if it cannot be started at all.
    pub(crate) fn can_serve(&self) -> bool {
        self.held.status().state != KeeperState::Failed
    }

    /// Hands a client's connection over. It is closed if too many wait.
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

    /// A channel of our own to it, by which it is asked how it is. What is asked is taken as soon as it runs. Must be called
    /// within a tokio runtime.
    pub(crate) fn channel(&self) -> Channel {
        let keeper = self.clone();
        service::channel(move || {
            let (ours, theirs) = net::UnixStream::pair()?;
            keeper.attach(ourselves(), theirs.into(), None)?;
            Ok(ours)
        })
    }
}

/// We, as a client of the agent's: somebody who collects numbers, and says nothing for anybody.
fn ourselves() -> AttachClient {
    let uid = rustix::process::geteuid().as_raw();
    AttachClient {
        uid,
        gid: rustix::process::getegid().as_raw(),
        pid: std::process::id(),
        // No user's name and no number: nothing is asked for anybody, and nobody's sessions are this one's.
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
