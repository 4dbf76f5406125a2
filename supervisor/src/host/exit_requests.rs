//! `Shutdown` and `HandOver`: ending this supervisor, with its plugins or without.
//!
//! These handlers only forward the request. `serve` decides and acts.

use std::path::PathBuf;

use nix::unistd::Uid;
use talon_proto::host::{HandOverRequest, HandOverResponse, ShutdownRequest, ShutdownResponse};
use talon_sanitize::Raw;
use tokio::sync::{mpsc, oneshot};
use tonic::{Request, Response, Status};

use crate::config::Role;
use crate::peer::require;
use crate::to_wire::status_text;

/// A client's request to end the supervisor.
#[derive(Debug)]
pub enum ExitRequest {
    /// Stop the supervisor and its plugins. Answered as soon as that has started.
    Shutdown(oneshot::Sender<()>),
    /// Hand over to this process. Answered with the path of the socket to connect to.
    HandOver {
        /// The process that asks, from kernel credentials.
        pid: u32,
        /// The answer.
        answer: oneshot::Sender<Result<PathBuf, HandOverError>>,
    },
}

/// Why this supervisor does not hand over. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandOverError {
    /// The socket for it cannot be made.
    #[error("{0}; look at the log of the supervisor that runs")]
    Socket(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It is taking over itself.
    #[error("this supervisor is still taking over itself: wait until it has")]
    TakingOver,
    /// A service manager runs it.
    #[error(
        "this supervisor is run by a service manager, which would start another one beside yours: `systemctl restart` its \
         unit, which hands over, too"
    )]
    ServiceManager,
    /// Another supervisor asked before.
    #[error("another supervisor (pid {pid}) is taking over: wait until it has")]
    InProgress {
        /// That one.
        pid: u32,
    },
}

/// Sends such requests to `serve`. Clones share state.
#[derive(Debug, Clone)]
pub struct ExitSender(mpsc::Sender<ExitRequest>);

/// A channel for such requests.
#[must_use]
pub fn exit_channel() -> (ExitSender, mpsc::Receiver<ExitRequest>) {
    // Requests are received at once, except while the supervisor ends. A request in that time finds the
    // channel full.
    let (sender, receiver) = mpsc::channel(1);
    (ExitSender(sender), receiver)
}

pub(super) async fn shutdown(
    sender: &ExitSender,
    request: &Request<ShutdownRequest>,
) -> Result<Response<ShutdownResponse>, Status> {
    let peer = require(request, Role::Admin)?.peer;
    tracing::info!(peer.uid, peer.pid, "asked to stop on host.sock");
    let (answer, answered) = oneshot::channel();
    sender.send_request(ExitRequest::Shutdown(answer))?;
    answered.await.map(|()| Response::new(ShutdownResponse {})).map_err(|_| busy())
}

pub(super) async fn hand_over(
    sender: &ExitSender,
    request: Request<HandOverRequest>,
) -> Result<Response<HandOverResponse>, Status> {
    let peer = require(&request, Role::Admin)?.peer;
    let own = Uid::effective().as_raw();
    // A service of our own may run as our user, and is not the one that starts supervisors.
    if peer.uid != own || peer.service.is_some() {
        return Err(Status::permission_denied(format!(
            "only the supervisor's own user (uid {own}) may take over from it: start the other one as that user"
        )));
    }
    let (answer, answered) = oneshot::channel();
    sender.send_request(ExitRequest::HandOver { pid: peer.pid, answer })?;
    match answered.await {
        Ok(Ok(socket)) => {
            Ok(Response::new(HandOverResponse { socket: socket.to_string_lossy().into_owned() }))
        }
        Ok(Err(why)) => Err(Status::failed_precondition(status_text(Raw::of(&why)))),
        Err(_) => Err(busy()),
    }
}

impl ExitSender {
    fn send_request(&self, asked: ExitRequest) -> Result<(), Status> {
        self.0.try_send(asked).map_err(|_| busy())
    }
}

fn busy() -> Status {
    Status::failed_precondition("this supervisor is ending or handing over already: wait until it has")
}
