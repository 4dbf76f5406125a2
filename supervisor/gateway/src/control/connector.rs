//! Connections to host and agent, requested over the control socket.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use talon_child::inherited::{InheritedFdError, connected};
use talon_proto::gateway::{NeedAgent, NeedHost, from_gateway};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::{SupervisorControl, message};
use crate::backends::{Backend, ConnectBackend};

/// How long to wait for a connection: an agent that is started again is waited for, as on `agent.sock`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// The time between two requests: 40 in a minute, beside 36 answers to pings, are below the 100 messages that the supervisor hears.
const INTERVAL: Duration = Duration::from_millis(1500);

/// Why a connection was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error(transparent)]
    Descriptor(#[from] InheritedFdError),
    #[error("no request is waiting for the connection {id}")]
    NotRequested { id: u64 },
}

/// Asks the supervisor for connections.
pub(crate) struct SupervisorConnector {
    control: Arc<SupervisorControl>,
    /// The id of the next request.
    next: AtomicU64,
    pending: Mutex<BTreeMap<u64, oneshot::Sender<UnixStream>>>,
    /// When the next request may be sent.
    due: tokio::sync::Mutex<Instant>,
}

impl SupervisorConnector {
    pub(crate) fn new(control: Arc<SupervisorControl>) -> Arc<Self> {
        Arc::new(Self {
            control,
            next: AtomicU64::new(1),
            pending: Mutex::default(),
            due: tokio::sync::Mutex::new(Instant::now()),
        })
    }

    /// Receives a connection. Must be called within a runtime.
    ///
    /// # Errors
    /// [`ConnectionError`], if no request has this id or the descriptor is no connection.
    pub(crate) fn receive(&self, id: u64, descriptor: Option<OwnedFd>) -> Result<(), ConnectionError> {
        let request = self.pending.lock().remove(&id);
        let stream = connected(descriptor)?;
        let taken = request.is_some_and(|request| request.send(stream).is_ok());
        if taken { Ok(()) } else { Err(ConnectionError::NotRequested { id }) }
    }
}

impl SupervisorConnector {
    /// Waits until one more request may be sent: clients whose requests fail must not make us say more than the supervisor hears.
    async fn wait_due(&self) {
        let mut due = self.due.lock().await;
        sleep_until(*due).await;
        *due = Instant::now() + INTERVAL;
    }
}

/// A pending request; dropping it removes it.
struct PendingConnection<'l> {
    connector: &'l SupervisorConnector,
    id: u64,
}

impl Drop for PendingConnection<'_> {
    fn drop(&mut self) {
        self.connector.pending.lock().remove(&self.id);
    }
}

#[async_trait]
impl ConnectBackend for SupervisorConnector {
    async fn connect(&self, backend: Backend) -> io::Result<UnixStream> {
        self.wait_due().await;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answers, answer) = oneshot::channel();
        self.pending.lock().insert(id, answers);
        let _forgotten = PendingConnection { connector: self, id };
        let need = match backend {
            Backend::Host => from_gateway::Kind::NeedHost(NeedHost { id }),
            Backend::Agent => from_gateway::Kind::NeedAgent(NeedAgent { id }),
        };
        self.control.send(&message(need), None).await.map_err(io::Error::other)?;
        match tokio::time::timeout(CONNECT_TIMEOUT, answer).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(_)) | Err(_) => Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                format!("the supervisor handed no connection in ({backend:?}): see `talon status`"),
            )),
        }
    }
}
