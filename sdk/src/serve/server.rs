//! The gRPC server: its limits, and its shutdown.

use std::sync::Arc;
use std::time::Duration;

use talon_proto::HEALTH_SERVICE;
use talon_proto::goplugin::grpc_controller_server::GrpcControllerServer;
use talon_proto::notices::event_source_server::EventSourceServer;
use talon_proto::notices::notices_server::NoticesServer;
use talon_proto::plugin::plugin_service_server::PluginServiceServer;
use talon_wire::LazyWritable;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::Health;

use super::call::MAX_REQUEST_BYTES;
use super::connection;
use super::drain::{Controller, StopSignals};
use super::error::ServeError;
use super::events::EventsService;
use super::notices::NoticesService;
use super::router::Router;
use super::service::ServedPlugin;
use crate::Plugin;

/// How long the server waits after a failed accept: there are too many open files, and retrying at once does
/// not help.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

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
            tracing::warn!("asked to end twice: calls in flight are dropped");
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
    let events = EventsService { source: plugin.events.clone(), stop: stop.clone() };
    let wire = Arc::new(ServedPlugin::new(plugin));
    let router = Router {
        plugin: PluginServiceServer::from_arc(wire.clone()).max_decoding_message_size(MAX_REQUEST_BYTES),
        wire,
        notices: NoticesServer::new(notices),
        events: EventSourceServer::new(events),
        controller: GrpcControllerServer::new(Controller { stop: stop.clone() }),
        health,
    };
    tokio::select! {
        () = serve(router, listener, stop.clone()) => Ok(()),
        () = grace_expired(stop, grace) => {
            tracing::warn!("calls did not finish within the grace of {grace:?} and are dropped");
            Ok(())
        }
    }
}

/// Accepts connections until `stop`, and ends when none is left.
async fn serve<H: Health>(router: Router<H>, listener: UnixListener, stop: CancellationToken) {
    let hosts = TaskTracker::new();
    let accept = async {
        loop {
            match listener.accept().await.and_then(|(stream, _)| LazyWritable::new(stream)) {
                Ok(stream) => {
                    // How a host disconnects does not matter here, and calls report their own ends.
                    hosts.spawn(connection::serve(stream, router.clone(), stop.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a host cannot be let in");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    let _stopped: Option<()> = stop.run_until_cancelled(accept).await;
    drop(listener);
    hosts.close();
    hosts.wait().await;
}

async fn grace_expired(stop: CancellationToken, grace: Duration) {
    stop.cancelled().await;
    tokio::time::sleep(grace).await;
}
