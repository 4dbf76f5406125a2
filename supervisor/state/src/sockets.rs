//! The listening sockets of plugins and the connections of operators: access control and shutdown.

mod connection;

use std::sync::Arc;

use talon_listen::LogThrottle;
use talon_proto::state::operator_server::OperatorServer;
use talon_proto::state::state_server::StateServer;
use talon_store::Namespace;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::database::{Database, SocketGuard};
use crate::gate::{Gate, RequestBudget};
use crate::limits::{
    ACCEPT_PAUSE, CLOSE_GRACE, MAX_CONNECTIONS, MAX_MESSAGE_BYTES, MAX_OPERATOR_TIME, MAX_PLUGIN_TIME,
};
use crate::operator;
use crate::plugin;

/// A plugin's socket.
pub(crate) struct PluginSocket {
    listener: UnixListener,
    /// The namespace of all clients of this socket.
    namespace: Namespace,
    /// The only uid that may connect.
    uid: u32,
    database: Arc<Database>,
    /// The plugin's request budget, shared by all its sockets.
    request_budget: Arc<RequestBudget>,
    server: StateServer<plugin::Service>,
    /// How many connections of other users were refused.
    refused: u64,
    /// One throttle for each socket: the log lines name its plugin, and one plugin's refusals must not hide
    /// another's.
    unknown_peer_log: LogThrottle,
    full_socket_log: LogThrottle,
}

impl PluginSocket {
    /// Takes ownership of a listening socket.
    ///
    /// # Errors
    /// FAILED_PRECONDITION if the database was not opened for the plugins' key-values.
    pub(crate) fn new(
        listener: UnixListener,
        namespace: Namespace,
        uid: u32,
        database: Arc<Database>,
    ) -> Result<Self, Status> {
        let key_values = database.key_values()?;
        let room = database.request_budgets.for_plugin(&namespace.plugin);
        let service =
            plugin::Service::new(Arc::clone(&database), key_values, namespace.clone(), Arc::clone(&room));
        let server = StateServer::new(service).max_decoding_message_size(MAX_MESSAGE_BYTES);
        Ok(Self {
            listener,
            namespace,
            uid,
            database,
            request_budget: room,
            server,
            refused: 0,
            unknown_peer_log: LogThrottle::new(),
            full_socket_log: LogThrottle::new(),
        })
    }

    /// Serves clients with the right uid, until `closed`; running requests are finished.
    pub(crate) async fn serve(mut self, closed: CancellationToken) {
        let _served = SocketGuard::new(&self.database);
        let room = Arc::clone(&self.request_budget);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = closed.cancelled() => break,
                Some(_ended) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        if self.admits(&stream, connections.len()) {
                            let gate = Gate::new(self.server.clone(), Arc::clone(&room), closed.clone(), MAX_PLUGIN_TIME);
                            connections.spawn(connection::serve(stream, gate, closed.clone()));
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection cannot be accepted; see the open files limit");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        // No client can connect while the last requests are finished.
        drop(self.listener);
        let finished =
            tokio::time::timeout(CLOSE_GRACE, async { while connections.join_next().await.is_some() {} });
        if finished.await.is_err() {
            tracing::info!(
                plugin = %self.namespace.plugin,
                connections = connections.len(),
                "connections were cut off: they did not end by themselves"
            );
        }
    }

    fn admits(&mut self, stream: &UnixStream, connections: usize) -> bool {
        let plugin = &self.namespace.plugin;
        let peer = stream.peer_cred().ok();
        if peer.as_ref().map(tokio::net::unix::UCred::uid) != Some(self.uid) {
            self.refused += 1;
            if let Some(unsaid) = self.unknown_peer_log.permit() {
                let (uid, pid) = (peer.as_ref().map(|peer| peer.uid()), peer.and_then(|peer| peer.pid()));
                tracing::warn!(%plugin, peer.uid = uid, peer.pid = pid, refused = self.refused, unsaid, "a connection of another user was closed");
            }
            return false;
        }
        if connections >= MAX_CONNECTIONS {
            if let Some(unsaid) = self.full_socket_log.permit() {
                tracing::warn!(%plugin, unsaid, "a connection was closed: {MAX_CONNECTIONS} of one socket are the most");
            }
            return false;
        }
        true
    }
}

/// Serves an operator's connection, until it ends or `closed`.
pub(crate) async fn serve_operator(stream: UnixStream, database: Arc<Database>, closed: CancellationToken) {
    let service = operator::Service::new(database, closed.clone());
    let server = OperatorServer::new(service).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let gate = Gate::new(server, RequestBudget::new_operator(), closed.clone(), MAX_OPERATOR_TIME);
    let serving = connection::serve(stream, gate, closed.clone());
    let late = async {
        closed.cancelled().await;
        tokio::time::sleep(CLOSE_GRACE).await;
    };
    tokio::select! {
        () = serving => {}
        () = late => tracing::info!("an operator's connection was cut off: it did not end by itself"),
    }
}
