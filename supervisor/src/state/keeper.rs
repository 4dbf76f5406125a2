//! What `talon-state` should have: the sockets of the plugins that run, and the connections of operators. It is told again
//! after each of its restarts, so that a plugin notices of one no more than a wait.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use talon_plugin::{Attached, EventKind, Events, Link, NewEvent, PluginName, StateSockets};
use talon_proto::state::{AttachPlugin, Open};
use talon_sanitize::{Sanitized, inert};
use tokio::net::UnixStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tonic::codegen::http::Uri;
use tower::Service;

use super::session;
use super::status::{KeeperState, KeeperStatus, NotOpened, Passing};
use crate::config::Quota;

/// How long the first start may take until the database is open. A large one is examined for up to 5 s then, and an
/// earlier supervisor's may still be ending; what takes longer is stuck, and the start is given up with its reason.
const OPEN_WITHIN: Duration = Duration::from_secs(30);
/// How long a refusal that may pass is waited out at the first start: the process of a supervisor that was killed a moment
/// ago still holds the database until the kernel has ended it.
const PASSING: Duration = Duration::from_secs(5);
/// How often the first start is tried for a service that ends without saying why: what ends so thrice goes on to.
const SILENT_ENDS: u64 = 3;
/// Operators' connections that may wait to be handed over. They wait while the service starts; each is a person or a script.
const MAX_WAITING_OPERATORS: usize = 16;

/// Whose quota is what.
pub(crate) type Quotas = Arc<dyn Fn(&PluginName) -> Quota + Send + Sync>;

/// The supervisor's hold on `talon-state`. Clones are the same.
#[derive(Clone)]
pub struct Keeper {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) open: Open,
    quotas: ArcSwap<Quotas>,
    events: Events,
    wanted: Mutex<Wanted>,
    /// Something in `wanted` changed.
    pub(super) changed: Notify,
    status: watch::Sender<KeeperStatus>,
    /// Ends the session, and with its control socket the service. Another one once the service may run again.
    closing: Mutex<CancellationToken>,
    /// Ends the session with the present process. That one's end of the socket may have been handed on, so that the session
    /// would not end by itself, and somebody else would be given what is meant for the next process.
    session: Mutex<CancellationToken>,
}

#[derive(Default)]
struct Wanted {
    last_id: u64,
    /// Ours are kept open beside those that were handed over: a plugin that connects while the service is being started
    /// again waits in the queue of its socket.
    sockets: BTreeMap<u64, Socket>,
    operators: Vec<OwnedFd>,
}

#[derive(Clone)]
pub(super) struct Socket {
    pub(super) about: AttachPlugin,
    pub(super) listener: Arc<OwnedFd>,
}

impl Keeper {
    /// Without a process yet: it gets one by being given to the registry as a service's link.
    #[must_use]
    pub fn new(open: Open, quotas: Quotas, events: Events) -> Self {
        let inner = Inner {
            open,
            quotas: ArcSwap::from_pointee(quotas),
            events,
            wanted: Mutex::default(),
            changed: Notify::new(),
            status: watch::Sender::new(KeeperStatus::default()),
            session: Mutex::new(CancellationToken::new()),
            closing: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// From now on plugins' processes that start have these quotas.
    pub fn set_quotas(&self, quotas: Quotas) {
        self.inner.quotas.store(Arc::new(quotas));
    }

    /// How the service is.
    #[must_use]
    pub fn status(&self) -> KeeperStatus {
        self.inner.status.borrow().clone()
    }

    /// What a plugin may keep.
    #[must_use]
    pub fn quota(&self, plugin: &PluginName) -> Quota {
        (self.inner.quotas.load())(plugin)
    }

    /// Resolves when the service has opened its database for the first time, also if that does not answer yet.
    ///
    /// # Errors
    /// [`NotOpened`] when it refused, for a reason that does not pass within seconds, or did nothing for half a minute.
    pub async fn opened(&self) -> Result<(), NotOpened> {
        let mut status = self.inner.status.subscribe();
        let began = Instant::now();
        loop {
            let now = status.borrow_and_update().clone();
            match now.state {
                KeeperState::Serving | KeeperState::Unavailable => return Ok(()),
                KeeperState::Starting | KeeperState::Backoff => {}
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

    /// Cancelled when the service that runs now is to end.
    pub(super) fn closing(&self) -> CancellationToken {
        self.inner.closing()
    }

    /// Lets a service run again after one was stopped. What plugins were promised is kept: their sockets stayed open, and
    /// the next process gets them.
    pub(crate) fn reopen(&self) {
        *self.inner.closing.lock().unwrap_or_else(PoisonError::into_inner) = CancellationToken::new();
        self.inner.note(|status| *status = KeeperStatus::default());
    }

    /// Makes connections to the service's operator side. They are taken as soon as it runs.
    pub(crate) fn connector(
        &self,
    ) -> impl Service<
        Uri,
        Response = TokioIo<UnixStream>,
        Error = io::Error,
        Future = BoxFuture<'static, io::Result<TokioIo<UnixStream>>>,
    > + use<> {
        let keeper = self.clone();
        // The URI only fills a header: there is one place to connect to.
        tower::service_fn(move |_: Uri| {
            let connected = keeper.connect();
            async move {
                let stream = connected?;
                stream.set_nonblocking(true)?;
                Ok(TokioIo::new(UnixStream::from_std(stream)?))
            }
            .boxed()
        })
    }

    fn connect(&self) -> io::Result<net::UnixStream> {
        let (ours, theirs) = net::UnixStream::pair()?;
        let mut wanted = self.inner.wanted();
        if wanted.operators.len() >= MAX_WAITING_OPERATORS {
            return Err(io::Error::other("too many operators wait for it"));
        }
        wanted.operators.push(theirs.into());
        drop(wanted);
        self.inner.changed.notify_one();
        Ok(ours)
    }
}

impl Inner {
    /// Ends the session there is, and begins another.
    fn next_session(&self) -> CancellationToken {
        let next = self.closing().child_token();
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *session, next.clone()).cancel();
        next
    }

    fn closing(&self) -> CancellationToken {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sockets that plugins have now.
    pub(super) fn sockets(&self) -> BTreeMap<u64, Socket> {
        self.wanted().sockets.clone()
    }

    /// The operators' connections that wait, which the caller hands over.
    pub(super) fn take_operators(&self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.wanted().operators)
    }

    /// Changes what is said about the service, and tells those who listen if that changes what it does.
    pub(super) fn note(&self, change: impl FnOnce(&mut KeeperStatus)) {
        let mut changed = None;
        self.status.send_modify(|status| {
            let before = status.state;
            change(status);
            if before != status.state {
                changed = Some((status.state, status.problem.clone()));
            }
        });
        if let Some((state, problem)) = changed {
            let event = NewEvent::new(EventKind::Supervisor, "state service").field("state", state.as_str());
            self.events.emit(match problem {
                Some(problem) => event.field("problem", problem),
                None => event,
            });
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("status", &*self.inner.status.borrow()).finish_non_exhaustive()
    }
}

impl StateSockets for Keeper {
    fn attach(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> Box<dyn Attached> {
        let quota = (self.inner.quotas.load())(plugin);
        let mut wanted = self.inner.wanted();
        wanted.last_id += 1;
        let id = wanted.last_id;
        let about = AttachPlugin {
            id,
            plugin: plugin.as_str().to_owned(),
            uid: peer,
            quota_bytes: quota.bytes.get(),
            quota_keys: quota.keys,
        };
        wanted.sockets.insert(id, Socket { about, listener: Arc::new(socket) });
        drop(wanted);
        self.inner.changed.notify_one();
        Box::new(Detach { inner: Arc::clone(&self.inner), id })
    }
}

/// Takes a socket back when it is dropped.
struct Detach {
    inner: Arc<Inner>,
    id: u64,
}

impl fmt::Debug for Detach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detach").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Attached for Detach {
    fn socket(&self) -> io::Result<OwnedFd> {
        let wanted = self.inner.wanted();
        // It is there for as long as this is.
        let socket = wanted.sockets.get(&self.id).ok_or(io::ErrorKind::NotFound)?;
        socket.listener.try_clone()
    }
}

impl Drop for Detach {
    fn drop(&mut self) {
        self.inner.wanted().sockets.remove(&self.id);
        self.inner.changed.notify_one();
    }
}

impl Link for Keeper {
    fn started(&self, control: OwnedFd, pid: u32, uid: u32) {
        self.inner.note(|status| {
            (status.pid, status.uid) = (pid, uid);
            status.state = KeeperState::Starting;
        });
        let ends = self.inner.next_session();
        tokio::spawn(session::run(Arc::clone(&self.inner), control, ends));
    }

    fn stopping(&self) {
        self.inner.closing().cancel();
    }

    fn ended(&self, how: &Sanitized, again_in: Option<Duration>) {
        self.inner.next_session();
        // Connections that nobody took are closed: whoever waits on one learns that now.
        drop(self.inner.take_operators());
        self.inner.note(|status| {
            status.pid = 0;
            status.restarts += u64::from(again_in.is_some());
            status.state = KeeperState::Backoff;
            // What it said itself before it ended says more.
            if status.refused.is_none() {
                status.problem = Some(inert!("it ended: {}", how));
            }
        });
        match again_in {
            Some(wait) => {
                tracing::error!(%how, again_in = ?wait, "the state service ended; it will be started again")
            }
            None => tracing::debug!(%how, "the state service ended"),
        }
    }
}
