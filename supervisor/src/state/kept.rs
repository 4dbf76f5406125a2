//! The control protocol with a process of `talon-state`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use talon_control::ControlError;
use talon_plugin::PluginName;
use talon_proto::state::{
    AttachOperator, AttachPlugin, Availability, DetachPlugin, FromState, Open, Ready, Refused, ToState,
    from_state, to_state,
};

use super::keeper::Quotas;
use crate::config::Quota;
use crate::service::{Held, KeeperState, KeeperStatus, Kind, Line, Waiting, said};

/// Maximum number of operators' connections that wait while the service starts; each is a person or a script.
const MAX_WAITING_OPERATORS: usize = 16;

/// The state service.
pub(super) struct Kept {
    open: Open,
    quotas: ArcSwap<Quotas>,
    sockets: Mutex<Sockets>,
    operators: Waiting<OwnedFd>,
}

/// The supervisor keeps its descriptors of these sockets open: a plugin that connects while the service
/// restarts waits in the socket's queue.
#[derive(Default)]
struct Sockets {
    last_id: u64,
    wanted: BTreeMap<u64, Socket>,
}

#[derive(Clone)]
struct Socket {
    about: AttachPlugin,
    listener: Arc<OwnedFd>,
}

/// What the current process has received.
#[derive(Default)]
pub(super) struct Given {
    /// The `Open` message was sent.
    opens: bool,
    /// It reported that it is ready and may receive sockets. A repeated report does not reset anything.
    ready: bool,
    sockets: BTreeSet<u64>,
}

impl Kept {
    pub(super) fn new(open: Open, quotas: Quotas) -> Self {
        Self {
            open,
            quotas: ArcSwap::from_pointee(quotas),
            sockets: Mutex::default(),
            operators: Waiting::new(MAX_WAITING_OPERATORS),
        }
    }

    pub(super) fn set_quotas(&self, quotas: Quotas) {
        self.quotas.store(Arc::new(quotas));
    }

    pub(super) fn quota(&self, plugin: &PluginName) -> Quota {
        (self.quotas.load())(plugin)
    }

    /// Adds the socket of a plugin's process; returns its id.
    pub(super) fn add(&self, plugin: &PluginName, peer: u32, socket: OwnedFd) -> u64 {
        let quota = self.quota(plugin);
        let mut sockets = self.sockets();
        sockets.last_id += 1;
        let id = sockets.last_id;
        let about = AttachPlugin {
            id,
            plugin: plugin.as_str().to_owned(),
            uid: peer,
            quota_bytes: quota.bytes.get(),
            quota_keys: quota.keys,
        };
        sockets.wanted.insert(id, Socket { about, listener: Arc::new(socket) });
        id
    }

    pub(super) fn remove(&self, id: u64) {
        self.sockets().wanted.remove(&id);
    }

    /// A duplicate of an attached socket.
    pub(super) fn socket(&self, id: u64) -> io::Result<OwnedFd> {
        self.sockets().wanted.get(&id).ok_or(io::ErrorKind::NotFound)?.listener.try_clone()
    }

    /// Queues an operator's connection for the service.
    pub(super) fn operator(&self, connection: OwnedFd) -> io::Result<()> {
        self.operators.push(connection).map_err(|_| io::Error::other("too many operators wait for it"))
    }

    fn sockets(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kind for Kept {
    const CALLED: &'static str = "state service";
    type To = ToState;
    type From = FromState;
    type Given = Given;

    async fn give(held: &Held<Self>, line: &Line<Self>, given: &mut Given) -> Result<(), ControlError> {
        let kept = held.kind();
        if !given.opens {
            line.send(&message(to_state::What::Open(kept.open.clone())), None).await?;
            given.opens = true;
        }
        if !given.ready {
            return Ok(());
        }
        let wanted = kept.sockets().wanted.clone();
        for (id, socket) in &wanted {
            if given.sockets.insert(*id) {
                let attach = message(to_state::What::AttachPlugin(socket.about.clone()));
                line.send(&attach, Some(socket.listener.as_fd())).await?;
            }
        }
        let gone: Vec<u64> = given.sockets.iter().copied().filter(|id| !wanted.contains_key(id)).collect();
        for id in gone {
            given.sockets.remove(&id);
            line.send(&message(to_state::What::DetachPlugin(DetachPlugin { id })), None).await?;
        }
        while let Some(operator) = kept.operators.pop() {
            let attach = message(to_state::What::AttachOperator(AttachOperator {}));
            line.send(&attach, Some(operator.as_fd())).await?;
        }
        Ok(())
    }

    fn hear(held: &Held<Self>, given: &mut Given, message: FromState) {
        match message.what {
            Some(from_state::What::Ready(Ready { engine, place, problem, .. })) => {
                tracing::info!(engine = %said(&engine), place = %said(&place), "state is kept");
                held.note(|status| {
                    status.opened(&engine, &place);
                    answers(status, &problem);
                });
                given.ready = true;
            }
            Some(from_state::What::Refused(Refused { message, retryable })) => held.note(|status| {
                let problem = status.refused(&message, retryable);
                tracing::error!(%problem, "the state service cannot open its database");
            }),
            Some(from_state::What::Availability(Availability { problem })) => {
                if problem.is_empty() {
                    tracing::info!("the state service's database answers again");
                } else {
                    tracing::warn!(problem = %said(&problem), "the state service's database does not answer");
                }
                held.note(|status| answers(status, &problem));
            }
            // A newer service may send messages that this supervisor does not know.
            None => {}
        }
    }

    fn ended(&self) {
        // The dropped connections tell their clients that no service takes them.
        self.operators.retain(|_| false);
    }
}

fn answers(status: &mut KeeperStatus, problem: &str) {
    let well = problem.is_empty();
    status.state = if well { KeeperState::Serving } else { KeeperState::Unavailable };
    status.problem = (!well).then(|| said(problem));
}

fn message(what: to_state::What) -> ToState {
    ToState { what: Some(what) }
}
