//! How a plugin ends: on a signal or on go-plugin's `Shutdown`, after the calls in flight.

use std::io;

use talon_proto::goplugin::Empty;
use talon_proto::goplugin::grpc_controller_server::GrpcController;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

/// The signals by which a host asks a plugin to end.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// From here on these signals no longer kill the process.
    pub(super) fn install() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// `plugin.GRPCController`: the host's other way to request the end.
pub(super) struct Controller {
    pub(super) stop: CancellationToken,
}

#[tonic::async_trait]
impl GrpcController for Controller {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        // Draining waits for this very call too, so the answer still goes out.
        self.stop.cancel();
        Ok(Response::new(Empty {}))
    }
}
