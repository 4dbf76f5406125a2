//! The plugins' sockets: who may connect, how often, and until when.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::Stream;
use talon_child::inherited::{InheritedFdError, listening};
use talon_listen::{FRAME_BYTES, LogThrottle, PrefaceTimeout, WINDOW_BYTES};
use talon_proto::agent::{AttachModel, DetachModel};
use talon_proto::model::model_server::ModelServer;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::transport;
use tonic::transport::server::Connected;

use super::gate::Gate;
use super::limits::{
    ACCEPT_PAUSE, MAX_CONNECTIONS, MAX_HEADER_BYTES, MAX_REQUEST_BYTES, MAX_SOCKETS, MAX_STREAMS,
};
use super::plugin::{PluginModels, Plugins};
use super::service::Service;
use crate::agent::Agent;

/// Why a socket is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelSocketError {
    #[error("{0}")]
    Descriptor(#[from] InheritedFdError),
    #[error("{MAX_SOCKETS} sockets are the most")]
    TooMany,
    #[error("no socket {0} is attached")]
    NotAttached(u64),
}

/// The sockets that are served.
pub(crate) struct ModelSockets {
    agent: Arc<Agent>,
    plugins: Plugins,
    /// By the supervisor's numbers.
    sockets: HashMap<u64, AttachedSocket>,
    tasks: TaskTracker,
    /// Cancelled when the agent ends.
    ending: CancellationToken,
}

#[derive(Debug)]
struct AttachedSocket {
    /// Keeps what the plugin shares.
    _plugin: Arc<PluginModels>,
    closed: CancellationToken,
}

impl ModelSockets {
    /// None yet.
    pub(crate) fn new(agent: Arc<Agent>, ending: CancellationToken) -> Self {
        let (sockets, tasks) = (HashMap::new(), TaskTracker::new());
        Self { agent, plugins: Plugins::default(), sockets, tasks, ending }
    }

    /// Serves a socket; one that is served already has another grant from now on. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`ModelSocketError`]
    pub(crate) fn attach(
        &mut self,
        attach: AttachModel,
        socket: Option<OwnedFd>,
    ) -> Result<(), ModelSocketError> {
        let (id, uid, name) = (attach.id, attach.uid, attach.plugin.clone());
        if self.sockets.contains_key(&id) {
            self.plugins.with_grant(&name, attach.into());
            return Ok(());
        }
        let listener = listening(socket)?;
        if self.sockets.len() >= MAX_SOCKETS {
            return Err(ModelSocketError::TooMany);
        }
        let plugin = self.plugins.with_grant(&name, attach.into());
        tracing::debug!(id, plugin = name, uid, "a plugin's socket for completions is served");
        let closed = self.ending.child_token();
        self.tasks.spawn(serve(Arc::clone(&self.agent), Arc::clone(&plugin), listener, uid, closed.clone()));
        self.sockets.insert(id, AttachedSocket { _plugin: plugin, closed });
        Ok(())
    }

    /// Stops serving a socket, and cancels what is asked there.
    ///
    /// # Errors
    /// [`ModelSocketError::NotAttached`]
    pub(crate) fn detach(&mut self, detach: DetachModel) -> Result<(), ModelSocketError> {
        let socket = self.sockets.remove(&detach.id).ok_or(ModelSocketError::NotAttached(detach.id))?;
        socket.closed.cancel();
        Ok(())
    }

    /// Returns when all connections have ended.
    pub(crate) async fn wait_closed(self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Serves clients with the right uid, until `closed`.
async fn serve(
    agent: Arc<Agent>,
    plugin: Arc<PluginModels>,
    listener: UnixListener,
    uid: u32,
    closed: CancellationToken,
) {
    let service = ModelServer::new(Service::new(agent, Arc::clone(&plugin), closed.clone()))
        .max_decoding_message_size(MAX_REQUEST_BYTES);
    let admission =
        Admission { plugin: plugin.name.clone(), uid, open: Arc::default(), log: LogThrottle::new() };
    let served = transport::Server::builder()
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .serve_with_incoming_shutdown(
            Gate::new(service, Arc::clone(&plugin)),
            admission.connections(listener),
            closed.cancelled_owned(),
        )
        .await;
    if let Err(error) = served {
        tracing::warn!(plugin = plugin.name, %error, "a plugin's socket for completions failed");
    }
}

/// Lets the plugin in, and nobody else.
struct Admission {
    plugin: String,
    uid: u32,
    open: Arc<AtomicUsize>,
    log: LogThrottle,
}

impl Admission {
    /// The connections that are let in.
    fn connections(
        self,
        listener: UnixListener,
    ) -> impl Stream<Item = io::Result<PrefaceTimeout<OpenConnection>>> {
        futures_util::stream::unfold((self, listener), |(admission, listener)| async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        if let Some(connection) = admission.admit(&stream) {
                            return Some((
                                Ok(PrefaceTimeout::new(stream, connection)),
                                (admission, listener),
                            ));
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection cannot be accepted; see the open files limit");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        })
    }

    fn admit(&self, stream: &UnixStream) -> Option<OpenConnection> {
        let peer = stream.peer_cred().ok().map(|peer| peer.uid());
        if peer != Some(self.uid) {
            if let Some(unsaid) = self.log.permit() {
                tracing::warn!(
                    plugin = self.plugin,
                    peer.uid = peer,
                    unsaid,
                    "a connection of another user was closed"
                );
            }
            return None;
        }
        let connection = OpenConnection(Arc::clone(&self.open));
        if self.open.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            if let Some(unsaid) = self.log.permit() {
                tracing::warn!(
                    plugin = self.plugin,
                    unsaid,
                    "a connection was closed: {MAX_CONNECTIONS} of one socket for completions are the most"
                );
            }
            return None;
        }
        Some(connection)
    }
}

/// A connection's slot.
#[derive(Debug)]
struct OpenConnection(Arc<AtomicUsize>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connected for OpenConnection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}
