//! What `talon-state` should have: the sockets of the plugins that run, and the connections of operators. It is told again
//! after each of its restarts, so that a plugin notices of one no more than a wait.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::sync::Arc;
use std::time::Duration;

use talon_plugin::{Attached, Events, Link, PluginName, StateSockets};
use talon_proto::state::Open;
use talon_sanitize::Sanitized;
use tokio::time::{Instant, timeout_at};
use tonic::transport::Channel;

use super::kept::Kept;
use crate::config::Quota;
use crate::service::{self, Connector, Held, KeeperState, KeeperStatus, Passing};

/// How long the first start may take until the database is open. A large one is examined for up to 5 s then, and an
/// earlier supervisor's may still be ending; what takes longer is stuck, and the start is given up with its reason.
const OPEN_WITHIN: Duration = Duration::from_secs(30);
/// How long a refusal that may pass is waited out at the first start: the process of a supervisor that was killed a moment
/// ago still holds the database until the kernel has ended it.
const PASSING: Duration = Duration::from_secs(5);
/// How often the first start is tried for a service that ends without saying why: what ends so thrice goes on to.
const SILENT_ENDS: u64 = 3;

/// Whose quota is what.
pub(crate) type Quotas = Arc<dyn Fn(&PluginName) -> Quota + Send + Sync>;

/// Why the service does not serve at the first start. The text ends with what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("state cannot be kept: {why}")]
pub struct NotOpened {
    why: String,
    /// Whether somebody else held the database, so that it may go away by itself.
    pub may_pass: bool,
}

/// The supervisor's hold on `talon-state`. Clones are the same.
#[derive(Clone)]
pub struct Keeper {
    pub(super) held: Held<Kept>,
}

impl Keeper {
    /// Without a process yet: it gets one by being given to the registry as a service's link.
    #[must_use]
    pub fn new(open: Open, quotas: Quotas, events: Events) -> Self {
        Self { held: Held::new(Kept::new(open, quotas), events) }
    }

    /// From now on plugins' processes that start have these quotas.
    pub fn set_quotas(&self, quotas: Quotas) {
        self.held.kind().set_quotas(quotas);
    }

    /// How the service is.
    #[must_use]
    pub fn status(&self) -> KeeperStatus {
        self.held.status()
    }

    /// What a plugin may keep.
    #[must_use]
    pub fn quota(&self, plugin: &PluginName) -> Quota {
        self.held.kind().quota(plugin)
    }

    /// Resolves when the service has opened its database for the first time, also if that does not answer yet.
    ///
    /// # Errors
    /// [`NotOpened`] when it refused, for a reason that does not pass within seconds, or did nothing for half a minute.
    pub async fn opened(&self) -> Result<(), NotOpened> {
        let mut status = self.held.subscribe();
        let began = Instant::now();
        loop {
            let now = status.borrow_and_update().clone();
            match now.state {
                KeeperState::Serving | KeeperState::Unavailable => return Ok(()),
                KeeperState::Starting | KeeperState::Backoff | KeeperState::Failed => {}
            }
            let why = || {
                let said = now.problem.as_ref().map(ToString::to_string);
                let silent =
                    || format!("talon-state has said nothing for {} s: see the log", OPEN_WITHIN.as_secs());
                let may_pass = now.refused == Some(Passing::Maybe);
                NotOpened { why: said.unwrap_or_else(silent), may_pass }
            };
            let patience = match now.refused {
                Some(Passing::No) => return Err(why()),
                Some(Passing::Maybe) => PASSING,
                None if now.restarts >= SILENT_ENDS => return Err(why()),
                None => OPEN_WITHIN,
            };
            match timeout_at(began + patience, status.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(why()),
            }
        }
    }

    /// Lets a service run again after one was stopped. What plugins were promised is kept: their sockets stayed open, and
    /// the next process gets them.
    pub(crate) fn reopen(&self) {
        self.held.reopen();
    }

    /// A channel to the service's operator side. What is asked is taken as soon as it runs. Must be called within a tokio
    /// runtime.
    pub(crate) fn channel(&self) -> Channel {
        service::channel(self.connects())
    }

    /// The same for whoever wants a channel of their own making.
    pub(crate) fn connector(&self) -> impl Connector + use<> {
        service::connector(self.connects())
    }

    fn connects(&self) -> impl Fn() -> io::Result<net::UnixStream> + Send + use<> {
        let held = self.held.clone();
        move || {
            let (ours, theirs) = net::UnixStream::pair()?;
            held.kind().operator(theirs.into())?;
            held.changed();
            Ok(ours)
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("held", &self.held).finish()
    }
}

impl StateSockets for Keeper {
    fn attach(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> Box<dyn Attached> {
        let id = self.held.kind().add(plugin, peer, socket);
        self.held.changed();
        Box::new(Detach { held: self.held.clone(), id })
    }
}

/// Takes a socket back when it is dropped.
struct Detach {
    held: Held<Kept>,
    id: u64,
}

impl fmt::Debug for Detach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detach").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Attached for Detach {
    fn socket(&self) -> io::Result<OwnedFd> {
        self.held.kind().socket(self.id)
    }
}

impl Drop for Detach {
    fn drop(&mut self) {
        self.held.kind().remove(self.id);
        self.held.changed();
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
