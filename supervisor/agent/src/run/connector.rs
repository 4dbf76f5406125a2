//! Connections to the host, requested over the control socket.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use talon_child::inherited::{InheritedFdError, connected};
use talon_control::Control;
use talon_proto::agent::{FromAgent, NeedHost, ToAgent, from_agent};
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use crate::host_client::HostConnector;

/// The control socket to the supervisor.
pub(super) type SupervisorControl = Control<FromAgent, ToAgent>;

/// How long to wait for a connection. The supervisor creates a pair of sockets and sends one; if that takes
/// longer, it is being replaced or hangs, and the caller retries as long as that makes sense.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a connection to the host was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum HostConnectionError {
    #[error(transparent)]
    Descriptor(#[from] InheritedFdError),
    #[error("no request is waiting for the host connection {id}")]
    NotRequested { id: u64 },
}

/// Asks the supervisor for connections.
pub(super) struct SupervisorConnector {
    control: Arc<SupervisorControl>,
    /// The id of the next request.
    next: AtomicU64,
    pending: Mutex<BTreeMap<u64, oneshot::Sender<UnixStream>>>,
}

impl SupervisorConnector {
    pub(super) fn new(control: Arc<SupervisorControl>) -> Arc<Self> {
        Arc::new(Self { control, next: AtomicU64::new(1), pending: Mutex::default() })
    }

    /// Receives a connection. Must be called within a runtime.
    ///
    /// # Errors
    /// [`HostConnectionError`], if no request has this id or the descriptor is no connection.
    pub(super) fn receive_connection(
        &self,
        id: u64,
        descriptor: Option<OwnedFd>,
    ) -> Result<(), HostConnectionError> {
        let request = self.pending.lock().remove(&id);
        let stream = connected(descriptor)?;
        let taken = request.is_some_and(|request| request.send(stream).is_ok());
        if taken { Ok(()) } else { Err(HostConnectionError::NotRequested { id }) }
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
impl HostConnector for SupervisorConnector {
    async fn connect(&self) -> io::Result<UnixStream> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answers, answer) = oneshot::channel();
        self.pending.lock().insert(id, answers);
        let _forgotten = PendingConnection { connector: self, id };
        let message = FromAgent { kind: Some(from_agent::Kind::NeedHost(NeedHost { id })) };
        self.control.send(&message, None).await.map_err(io::Error::other)?;
        match tokio::time::timeout(CONNECT_TIMEOUT, answer).await {
            Ok(Ok(stream)) => Ok(stream),
            // As if there were no listener: a new supervisor may listen soon.
            Ok(Err(_)) | Err(_) => Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "the supervisor handed no connection to its plugins in: see whether it is being restarted (`talon status`)",
            )),
        }
    }
}
