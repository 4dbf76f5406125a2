//! The lifecycle of the process: it opens the requested database, serves the sockets that it gets, and ends
//! with its lifeline.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use talon_child::inherited::{InheritedFdError, connected, listening};
use talon_child::signals::Signals;
use talon_child::{ExitReason, open_request};
use talon_control::{Control, ControlError, Packet};
use talon_error_chain::error_chain;
use talon_proto::state::{AttachPlugin, Open, Ready, Refused, ToState, from_state, open, to_state};
use talon_store::{Namespace, PluginId, Quota};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::Status;

use crate::control_socket::{ControlSocket, message};
use crate::database::Database;
use crate::limits::{CLOSE_GRACE, MAX_OPERATORS, MAX_SOCKETS};
use crate::opening;
use crate::operator::ScratchDir;
use crate::plugin_engine::{HostCaller, HostLink, HostLinkError, PluginKeyValues};
use crate::sockets::{PluginSocket, serve_operator};

/// Serves the process at the other end of `control`, until that is closed or SIGTERM comes.
pub async fn run(control: OwnedFd) -> ExitReason {
    let (starter, mut signals) = match (Control::new(control), Signals::listen()) {
        (Ok(starter), Ok(signals)) => (Arc::new(starter), signals),
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(%error, "the control socket or signals cannot be watched");
            return ExitReason::Refused;
        }
    };
    let open = tokio::select! {
        received = starter.receive() => received,
        () = signals.terminated() => return ExitReason::Requested,
    };
    let open = match open {
        Ok(Some(Packet { message: ToState { kind: Some(to_state::Kind::Open(open)) }, .. })) => open,
        Ok(None) => return ExitReason::Requested,
        Ok(Some(_)) => return protocol_mismatch(&"the first message was not `Open`"),
        Err(error) => return protocol_mismatch(&error),
    };
    let database = tokio::select! {
        opened = open_database(open, &starter) => opened,
        () = signals.terminated() => return ExitReason::Requested,
    };
    let (database, host) = match database {
        Ok((database, host)) => (Arc::new(database), host),
        Err(OpenRequestError::Invalid(error)) => {
            return protocol_mismatch(&format!("`Open` has no sense: {error}"));
        }
        Err(OpenRequestError::Refused(refused)) => {
            tracing::error!(
                reason = refused.message,
                retryable = refused.retryable,
                "the database is not opened"
            );
            // If the starter has gone, the log has the reason.
            let _sent = starter.send(&message(from_state::Kind::Refused(refused)), None).await;
            return ExitReason::Refused;
        }
    };
    if let Some(file) = database.file.clone() {
        // It only accesses the disk.
        let _swept = tokio::task::spawn_blocking(move || ScratchDir::sweep(&file)).await;
    }
    let (engine, place, schema_version) = database.describe();
    let ready = Ready { engine: engine.to_owned(), place, schema_version, problem: database.problem() };
    tracing::info!(
        engine = ready.engine,
        place = ready.place,
        problem = ready.problem,
        "the database is open"
    );
    let ready = starter.send(&message(from_state::Kind::Ready(ready)), None).await;
    let end = match ready {
        Ok(()) => serve(&starter, &mut signals, &database, host).await,
        Err(_gone) => ExitReason::Requested,
    };
    database.close().await;
    tracing::info!("the database is closed");
    end
}

enum OpenRequestError {
    Invalid(open_request::InvalidOpenError),
    Refused(Refused),
}

/// Opens the database. One that a plugin keeps needs connections to the host.
async fn open_database(
    open: Open,
    starter: &Arc<ControlSocket>,
) -> Result<(Database, Option<Arc<HostLink>>), OpenRequestError> {
    if let Some(open::Engine::Plugin(target)) = open.engine {
        let host = HostLink::new(Arc::clone(starter));
        let action = format!("{}.{}", target.plugin, target.action);
        let caller = HostCaller::new(Arc::clone(&host), target);
        return Ok((Database::of_plugin(PluginKeyValues::new(caller, action)), Some(host)));
    }
    let request = open_request::parse(open).map_err(OpenRequestError::Invalid)?;
    let database = opening::open(request).await.map_err(OpenRequestError::Refused)?;
    Ok((database, None))
}

/// Handles the messages of the control socket, and waits for running requests at the end.
async fn serve(
    starter: &ControlSocket,
    signals: &mut Signals,
    database: &Arc<Database>,
    host: Option<Arc<HostLink>>,
) -> ExitReason {
    let mut serving = SocketSet::new(Arc::clone(database), host);
    let working = async {
        let watching = database.watch(starter);
        let handling = async {
            loop {
                match starter.receive().await {
                    Ok(Some(packet)) => serving.handle(packet),
                    Ok(None) => break ExitReason::Requested,
                    Err(error) => break control_socket_lost(&error),
                }
            }
        };
        tokio::select! {
            end = handling => end,
            // The watch ends when the starter has gone. The control socket reports that too.
            () = async { watching.await; std::future::pending().await } => ExitReason::Requested,
            () = signals.terminated() => ExitReason::Requested,
        }
    };
    let end = working.await;
    serving.finish().await;
    end
}

fn protocol_mismatch(why: &dyn std::fmt::Display) -> ExitReason {
    tracing::error!(%why, "the starter does not speak the control protocol; is it of another version?");
    ExitReason::ProtocolError
}

fn control_socket_lost(error: &ControlError) -> ExitReason {
    tracing::error!(error = error_chain(error), "the control socket failed: ending");
    ExitReason::ProtocolError
}

/// Why a message was ignored. It is only logged: the starter made a mistake, and the other sockets are still
/// served.
#[derive(Debug, thiserror::Error)]
enum ControlMessageError {
    #[error("the database is open already")]
    AlreadyOpen,
    #[error("it says nothing that this version knows")]
    Unknown,
    #[error("socket {0} is attached already")]
    Duplicate(u64),
    #[error("no socket {0} is attached")]
    NotAttached(u64),
    #[error("{0}")]
    Plugin(talon_store::InvalidError),
    #[error("{0}")]
    Descriptor(#[from] InheritedFdError),
    #[error("{}", .0.message())]
    Layers(Box<Status>),
    #[error("{0}")]
    HostLink(#[from] HostLinkError),
    #[error("no connection to the host is needed")]
    NoHost,
    #[error("{MAX_SOCKETS} sockets and {MAX_OPERATORS} operators are the most")]
    TooMany,
}

/// The sockets that are served.
struct SocketSet {
    database: Arc<Database>,
    /// Where connections to the host go, if the state is a plugin's.
    host: Option<Arc<HostLink>>,
    /// By the starter's ids; cancelled to detach.
    sockets: HashMap<u64, CancellationToken>,
    operators: TaskTracker,
    tasks: TaskTracker,
    closed: CancellationToken,
}

impl SocketSet {
    fn new(database: Arc<Database>, host: Option<Arc<HostLink>>) -> Self {
        Self {
            database,
            host,
            sockets: HashMap::new(),
            operators: TaskTracker::new(),
            tasks: TaskTracker::new(),
            closed: CancellationToken::new(),
        }
    }

    fn handle(&mut self, packet: Packet<ToState>) {
        let Packet { message, descriptor } = packet;
        let handled = match message.kind {
            None => Err(ControlMessageError::Unknown),
            Some(to_state::Kind::Open(_)) => Err(ControlMessageError::AlreadyOpen),
            Some(to_state::Kind::AttachPlugin(attach)) => self.attach(&attach, descriptor),
            Some(to_state::Kind::DetachPlugin(detach)) => self.detach(detach.id),
            Some(to_state::Kind::AttachOperator(_)) => self.attach_operator(descriptor),
            Some(to_state::Kind::HostConnection(connection)) => match &self.host {
                Some(host) => host.receive(connection.id, descriptor).map_err(ControlMessageError::from),
                None => Err(ControlMessageError::NoHost),
            },
        };
        if let Err(error) = handled {
            tracing::error!(%error, "a message on the control socket was not obeyed");
        }
    }

    fn attach(&mut self, attach: &AttachPlugin, socket: Option<OwnedFd>) -> Result<(), ControlMessageError> {
        let &AttachPlugin { id, ref plugin, uid, quota_bytes, quota_keys } = attach;
        let plugin = PluginId::new(plugin).map_err(ControlMessageError::Plugin)?;
        let listener = listening(socket)?;
        if self.sockets.contains_key(&id) {
            return Err(ControlMessageError::Duplicate(id));
        }
        if self.sockets.len() >= MAX_SOCKETS {
            return Err(ControlMessageError::TooMany);
        }
        tracing::debug!(id, %plugin, uid, "a plugin's socket is served");
        let namespace = Namespace { plugin, quota: Quota { bytes: quota_bytes, keys: quota_keys } };
        let socket = PluginSocket::new(listener, namespace, uid, Arc::clone(&self.database))
            .map_err(|status| ControlMessageError::Layers(status.into()))?;
        let closed = self.closed.child_token();
        self.tasks.spawn(socket.serve(closed.clone()));
        self.sockets.insert(id, closed);
        Ok(())
    }

    fn detach(&mut self, id: u64) -> Result<(), ControlMessageError> {
        let closed = self.sockets.remove(&id).ok_or(ControlMessageError::NotAttached(id))?;
        closed.cancel();
        Ok(())
    }

    fn attach_operator(&mut self, socket: Option<OwnedFd>) -> Result<(), ControlMessageError> {
        let stream = connected(socket)?;
        if self.operators.len() >= MAX_OPERATORS {
            return Err(ControlMessageError::TooMany);
        }
        self.operators.spawn(serve_operator(stream, Arc::clone(&self.database), self.closed.clone()));
        Ok(())
    }

    /// Stops accepting requests, and waits for those that run.
    async fn finish(self) {
        self.closed.cancel();
        self.tasks.close();
        self.operators.close();
        let finished = async { tokio::join!(self.tasks.wait(), self.operators.wait()) };
        if tokio::time::timeout(CLOSE_GRACE, finished).await.is_err() {
            tracing::warn!("ending although some requests are not answered");
        }
    }
}
