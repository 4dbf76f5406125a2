//! Connections to the host, requested over the control socket.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use talon_child::inherited::{InheritedFdError, connected};
use talon_proto::state::{NeedHost, from_state};
use tokio::net::UnixStream;
use tokio::sync::oneshot;

use crate::control_socket::{ControlSocket, message};

/// How long to wait for a connection. The supervisor gives none while it starts; who waits for longer asks again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a connection was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostLinkError {
    #[error(transparent)]
    Descriptor(#[from] InheritedFdError),
    #[error("no request is waiting for the host connection {0}")]
    NotRequested(u64),
}

/// Asks the supervisor for connections.
pub(crate) struct HostLink {
    control: Arc<ControlSocket>,
    /// The id of the next request.
    next: AtomicU64,
    pending: Mutex<BTreeMap<u64, oneshot::Sender<UnixStream>>>,
}

impl HostLink {
    pub(crate) fn new(control: Arc<ControlSocket>) -> Arc<Self> {
        Arc::new(Self { control, next: AtomicU64::new(1), pending: Mutex::default() })
    }

    /// Receives a connection. Must be called within a runtime.
    ///
    /// # Errors
    /// [`HostLinkError`]
    pub(crate) fn receive(&self, id: u64, descriptor: Option<OwnedFd>) -> Result<(), HostLinkError> {
        let request = self.pending.lock().remove(&id);
        let stream = connected(descriptor)?;
        let taken = request.is_some_and(|request| request.send(stream).is_ok());
        if taken { Ok(()) } else { Err(HostLinkError::NotRequested(id)) }
    }

    /// A connection on which `talon.host.v1` is served.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionRefused`] if the supervisor gives none for now.
    pub(super) async fn connect(&self) -> io::Result<UnixStream> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answers, answer) = oneshot::channel();
        self.pending.lock().insert(id, answers);
        let _forgotten = PendingConnection { link: self, id };
        let need = message(from_state::Kind::NeedHost(NeedHost { id }));
        self.control.send(&need, None).await.map_err(io::Error::other)?;
        match tokio::time::timeout(CONNECT_TIMEOUT, answer).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(_)) | Err(_) => Err(io::Error::new(
                io::ErrorKind::ConnectionRefused,
                "the supervisor gave no connection to its plugins: see whether it is being restarted (`talon status`)",
            )),
        }
    }
}

/// A pending request; dropping it removes it.
struct PendingConnection<'l> {
    link: &'l HostLink,
    id: u64,
}

impl Drop for PendingConnection<'_> {
    fn drop(&mut self) {
        self.link.pending.lock().remove(&self.id);
    }
}
