//! The gRPC server: its limits, and its end.

use std::time::Duration;

use talon_proto::HEALTH_SERVICE;
use talon_proto::goplugin::grpc_controller_server::GrpcControllerServer;
use talon_proto::notices::notices_server::NoticesServer;
use talon_proto::plugin::plugin_service_server::PluginServiceServer;
use tokio::net::UnixListener;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic_health::ServingStatus;

use super::ServeError;
use super::drain::{Controller, StopSignals};
use super::gather::Gather;
use super::notices::NoticesService;
use super::router::Router;
use super::service::Wire;
use crate::Plugin;

/// HTTP/2's frame size. Measured: 64 KiB answers take half the time of the default 16 KiB frames, because page
/// faults vanish; larger frames gain nothing more.
const FRAME_BYTES: u32 = 1 << 20;
/// How much a host may send ahead of us on one call and on one connection.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Calls on one connection at once; the host's further ones wait on its side. Far above what hosts admit.
const MAX_STREAMS: u32 = 1024;
/// The largest request. Hosts of this contract agree on 32 MiB; Talon itself stops arguments much earlier.
const MAX_REQUEST_BYTES: usize = 32 << 20;
/// The largest header list: credentials travel in messages, so headers are small.
const MAX_HEADER_BYTES: u32 = 64 << 10;

/// Serves until asked to end and drained.
pub(super) async fn run(
    plugin: Plugin,
    listener: UnixListener,
    mut signals: StopSignals,
) -> Result<(), ServeError> {
    let stop = CancellationToken::new();
    let asked = stop.clone();
    let told_twice = async {
        signals.next().await;
        asked.cancel();
        signals.next().await;
    };
    tokio::select! {
        result = run_until(plugin, listener, stop) => result,
        () = told_twice => {
            tracing::warn!("told twice to end: calls in flight are dropped");
            Ok(())
        }
    }
}

/// Serves until `stop`, then drains.
pub(super) async fn run_until(
    plugin: Plugin,
    listener: UnixListener,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let grace = plugin.grace;
    let (health_reporter, health) = tonic_health::server::health_reporter();
    for service in [HEALTH_SERVICE, ""] {
        health_reporter.set_service_status(service, ServingStatus::Serving).await;
    }
    let notices = NoticesService { board: plugin.notifier.board.clone(), stop: stop.clone() };
    let router = Router {
        plugin: PluginServiceServer::new(Wire::new(plugin)).max_decoding_message_size(MAX_REQUEST_BYTES),
        notices: NoticesServer::new(notices),
        controller: GrpcControllerServer::new(Controller { stop: stop.clone() }),
        health,
    };
    let serving = Server::builder()
        .max_frame_size(FRAME_BYTES)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .serve_with_incoming_shutdown(
            router,
            UnixListenerStream::new(listener).map(|accepted| accepted.map(Gather::new)),
            stop.clone().cancelled_owned(),
        );
    tokio::select! {
        result = serving => result.map_err(ServeError::Server),
        () = out_of_grace(stop, grace) => {
            tracing::warn!("calls did not finish within the grace of {grace:?} and are dropped");
            Ok(())
        }
    }
}

async fn out_of_grace(stop: CancellationToken, grace: Duration) {
    stop.cancelled().await;
    tokio::time::sleep(grace).await;
}
