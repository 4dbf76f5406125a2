//! `Shutdown` and `HandOver`: the end of this supervisor, for its plugins too or not.
//!
//! Both are only asked for here; what happens then is the matter of whoever runs the supervisor's life.

use std::path::PathBuf;

use nix::unistd::Uid;
use talon_proto::host::{HandOverRequest, HandOverResponse, ShutdownRequest, ShutdownResponse};
use tokio::sync::{mpsc, oneshot};
use tonic::{Request, Response, Status};

use super::peer::require;
use super::service::HostService;
use super::status_text;
use crate::config::Role;

/// What a client asked for.
#[derive(Debug)]
pub enum Asked {
    /// To end, and the plugins with it. Answered as soon as that has begun.
    Shutdown(oneshot::Sender<()>),
    /// To hand over to this process. Answered with the socket to connect to, or why not.
    HandOver {
        /// Who asks, as the kernel says.
        pid: u32,
        /// The answer.
        answer: oneshot::Sender<Result<PathBuf, String>>,
    },
}

/// Passes on what clients ask for. Clones are the same.
#[derive(Debug, Clone)]
pub struct Leaving(mpsc::Sender<Asked>);

/// What clients ask for, and who hears it.
#[must_use]
pub fn asked() -> (Leaving, mpsc::Receiver<Asked>) {
    // It is heard at once, but for the time in which the supervisor ends; who asks then finds no room.
    let (sender, receiver) = mpsc::channel(1);
    (Leaving(sender), receiver)
}

pub(super) async fn shutdown(
    service: &HostService,
    request: &Request<ShutdownRequest>,
) -> Result<Response<ShutdownResponse>, Status> {
    let peer = require(request, Role::Admin)?.peer;
    tracing::info!(peer.uid, peer.pid, "asked to stop on host.sock");
    let (answer, answered) = oneshot::channel();
    service.leaving.ask(Asked::Shutdown(answer))?;
    answered.await.map(|()| Response::new(ShutdownResponse {})).map_err(|_| busy())
}

pub(super) async fn hand_over(
    service: &HostService,
    request: Request<HandOverRequest>,
) -> Result<Response<HandOverResponse>, Status> {
    let peer = require(&request, Role::Admin)?.peer;
    let own = Uid::effective().as_raw();
    if peer.uid != own {
        return Err(Status::permission_denied(format!(
            "only the supervisor's own user (uid {own}) may take over from it: start the other one as that user"
        )));
    }
    let (answer, answered) = oneshot::channel();
    service.leaving.ask(Asked::HandOver { pid: peer.pid, answer })?;
    match answered.await {
        Ok(Ok(socket)) => {
            Ok(Response::new(HandOverResponse { socket: socket.to_string_lossy().into_owned() }))
        }
        Ok(Err(why)) => Err(Status::failed_precondition(status_text(why))),
        Err(_) => Err(busy()),
    }
}

impl Leaving {
    fn ask(&self, asked: Asked) -> Result<(), Status> {
        self.0.try_send(asked).map_err(|_| busy())
    }
}

fn busy() -> Status {
    Status::failed_precondition("this supervisor is ending or handing over already: wait until it has")
}
