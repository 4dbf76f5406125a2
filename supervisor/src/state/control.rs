//! The control protocol with a process of `talon-state`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use talon_control::ControlError;
use talon_guard::Origin;
use talon_listen::LogThrottle;
use talon_plugin_config::PluginName;
use talon_proto::state::{
    AttachOperator, AttachPlugin, Availability, DetachPlugin, FromState, HostConnection, NeedHost, Open,
    Ready, Refused, ToState, from_state, to_state,
};

use crate::agent::HostLink;
use crate::config::{AllowedActions, Quota, Role};
use crate::peer::{OwnService, Peer};
use crate::service::{
    BoundedQueue, ControlSocket, ManagedService, ManagedServiceState, ManagedServiceStatus, STATE_SERVICE,
    ServiceHandle, sanitize_report,
};

/// Maximum number of operators' connections that wait while the service starts; each is a person or a script.
const MAX_WAITING_OPERATORS: usize = 16;

static RESOURCE_SHORTAGE: LogThrottle = LogThrottle::new();

/// Looks up the quota of a plugin.
pub(crate) type QuotaLookup = Arc<dyn Fn(&PluginName) -> Quota + Send + Sync>;

/// The state service.
pub(super) struct StateService {
    open: Open,
    /// Whether a process has opened the database: its successors do not examine all of it while clients wait.
    examined: AtomicBool,
    quotas: ArcSwap<QuotaLookup>,
    /// The plugin that keeps the state, if one does. It has no state itself.
    backend: Option<String>,
    /// The service's connection to that plugin.
    pub(super) host_link: HostLink,
    /// The gid of its processes, for the audit log.
    pub(super) gid: AtomicU32,
    sockets: Mutex<PluginSockets>,
    operators: BoundedQueue<OwnedFd>,
}

/// The supervisor keeps its descriptors of these sockets open: a plugin that connects while the service
/// restarts waits in the socket's queue.
#[derive(Default)]
struct PluginSockets {
    last_id: u64,
    desired: BTreeMap<u64, PluginSocket>,
}

#[derive(Clone)]
struct PluginSocket {
    about: AttachPlugin,
    listener: Arc<OwnedFd>,
}

/// What the current process has received.
#[derive(Default)]
pub(super) struct SessionState {
    /// The `Open` message was sent.
    open_sent: bool,
    /// It reported that it is ready and may receive sockets. A repeated report does not reset anything.
    ready: bool,
    sockets: BTreeSet<u64>,
    /// The id of its latest unanswered request for a connection to the host.
    needs_host: Option<u64>,
}

impl StateService {
    pub(super) fn new(open: Open, quotas: QuotaLookup, backend: Option<String>) -> Self {
        Self {
            open,
            examined: AtomicBool::new(false),
            quotas: ArcSwap::from_pointee(quotas),
            backend,
            host_link: HostLink::new(state_peer),
            gid: AtomicU32::default(),
            sockets: Mutex::default(),
            operators: BoundedQueue::new(MAX_WAITING_OPERATORS),
        }
    }

    /// Whether a plugin has state: every one but that which keeps it.
    pub(super) fn serves(&self, plugin: &PluginName) -> bool {
        self.backend.as_deref() != Some(plugin.as_str())
    }

    pub(super) fn set_quotas(&self, quotas: QuotaLookup) {
        self.quotas.store(Arc::new(quotas));
    }

    pub(super) fn quota(&self, plugin: &PluginName) -> Quota {
        (self.quotas.load())(plugin)
    }

    /// Adds the socket of a plugin's process; returns its id.
    pub(super) fn attach(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> u64 {
        let quota = self.quota(plugin);
        let mut sockets = self.sockets.lock();
        sockets.last_id += 1;
        let id = sockets.last_id;
        let about = AttachPlugin {
            id,
            plugin: plugin.as_str().to_owned(),
            uid: peer,
            quota_bytes: quota.bytes.get(),
            quota_keys: quota.keys,
        };
        sockets.desired.insert(id, PluginSocket { about, listener: Arc::new(socket) });
        id
    }

    pub(super) fn detach(&self, id: u64) {
        self.sockets.lock().desired.remove(&id);
    }

    /// A duplicate of an attached socket.
    pub(super) fn socket(&self, id: u64) -> io::Result<OwnedFd> {
        self.sockets.lock().desired.get(&id).ok_or(io::ErrorKind::NotFound)?.listener.try_clone()
    }

    /// Queues an operator's connection for the service.
    pub(super) fn push_operator(&self, connection: OwnedFd) -> io::Result<()> {
        self.operators.push(connection).map_err(|_| io::Error::other("too many operators wait for it"))
    }
}

impl ManagedService for StateService {
    const NAME: &'static str = STATE_SERVICE;
    type Outgoing = ToState;
    type Incoming = FromState;
    type Session = SessionState;

    async fn reconcile(
        held: &ServiceHandle<Self>,
        line: &ControlSocket<Self>,
        given: &mut SessionState,
    ) -> Result<(), ControlError> {
        let kept = held.service();
        if !given.open_sent {
            let examined = kept.examined.load(Ordering::Relaxed);
            let open = Open { examined, ..kept.open.clone() };
            line.send(&message(to_state::Kind::Open(open)), None).await?;
            given.open_sent = true;
        }
        if let Some(id) = given.needs_host {
            let status = held.status();
            match kept.host_link.connect(status.uid, status.pid) {
                Ok(Some(theirs)) => {
                    let connection = message(to_state::Kind::HostConnection(HostConnection { id }));
                    line.send(&connection, Some(theirs.as_fd())).await?;
                    given.needs_host = None;
                }
                // Setting the endpoint triggers another attempt.
                Ok(None) => {}
                // The service asks again.
                Err(error) => {
                    given.needs_host = None;
                    if let Some(unsaid) = RESOURCE_SHORTAGE.permit() {
                        tracing::warn!(%error, unsaid, "the state service waits for a connection to its plugin; see the open files limit (LimitNOFILE=)");
                    }
                }
            }
        }
        if !given.ready {
            return Ok(());
        }
        let wanted = kept.sockets.lock().desired.clone();
        for (id, socket) in &wanted {
            if given.sockets.insert(*id) {
                let attach = message(to_state::Kind::AttachPlugin(socket.about.clone()));
                line.send(&attach, Some(socket.listener.as_fd())).await?;
            }
        }
        let gone: Vec<u64> = given.sockets.iter().copied().filter(|id| !wanted.contains_key(id)).collect();
        for id in gone {
            given.sockets.remove(&id);
            line.send(&message(to_state::Kind::DetachPlugin(DetachPlugin { id })), None).await?;
        }
        while let Some(operator) = kept.operators.pop() {
            let attach = message(to_state::Kind::AttachOperator(AttachOperator {}));
            line.send(&attach, Some(operator.as_fd())).await?;
        }
        Ok(())
    }

    fn receive(
        held: &ServiceHandle<Self>,
        given: &mut SessionState,
        message: FromState,
        _unwanted: Option<OwnedFd>,
    ) {
        match message.kind {
            Some(from_state::Kind::Ready(Ready { engine, place, problem, .. })) => {
                tracing::info!(engine = %sanitize_report(&engine), place = %sanitize_report(&place), "state is kept");
                held.update_status(|status| {
                    status.set_opened(&engine, &place);
                    set_availability(status, &problem, "");
                });
                given.ready = true;
                held.service().examined.store(true, Ordering::Relaxed);
            }
            Some(from_state::Kind::Refused(Refused { message, retryable })) => held.update_status(|status| {
                let problem = status.set_refused(&message, retryable);
                tracing::error!(%problem, "the state service cannot open its database");
            }),
            Some(from_state::Kind::Availability(Availability { problem, full })) => {
                if !problem.is_empty() {
                    tracing::warn!(problem = %sanitize_report(&problem), "the state service's database does not answer");
                } else if !full.is_empty() {
                    tracing::error!(problem = %sanitize_report(&full), "the state service refuses writes");
                } else {
                    tracing::info!("the state service serves all requests again");
                }
                held.update_status(|status| set_availability(status, &problem, &full));
            }
            Some(from_state::Kind::NeedHost(NeedHost { id })) => given.needs_host = Some(id),
            // A newer service may send messages that this supervisor does not know.
            None => {}
        }
    }

    fn process_ended(&self) {
        // The dropped connections tell their clients that no service takes them.
        self.operators.retain(|_| false);
        self.host_link.disconnect();
    }
}

/// The peer that the service calls as: it calls the storage backend, and sees no plugin.
fn state_peer(uid: u32, gid: u32, pid: u32) -> Peer {
    Peer {
        uid,
        gid,
        pid,
        rights: Some((Role::Call, Origin::System)),
        allowed: Some(Arc::new(AllowedActions::new(&[]))),
        service: Some(OwnService::State),
        delegation: None,
    }
}

fn set_availability(status: &mut ManagedServiceStatus, problem: &str, full: &str) {
    if problem.is_empty() {
        status.set_full(full);
    } else {
        (status.state, status.problem) = (ManagedServiceState::Unavailable, Some(sanitize_report(problem)));
    }
}

fn message(kind: to_state::Kind) -> ToState {
    ToState { kind: Some(kind) }
}
