//! The accept loop.

use std::io;
use std::time::Duration;

use talon_listen::LogThrottle;
use tokio::net::{TcpListener, TcpStream};

use super::connection::serve_connection;
use super::server::Server;
use super::stream::PermittedStream;
use crate::identity::{ClientAddress, ConnectedFrom};

/// The wait after an accept that failed for lack of descriptors or memory: these are freed as connections end.
const PAUSE: Duration = Duration::from_millis(100);

static REFUSED: LogThrottle = LogThrottle::new();
static FAILED: LogThrottle = LogThrottle::new();

/// Serves a connection, if there is room; else it is closed at once.
fn admit(server: &Server, stream: TcpStream, from: ConnectedFrom) {
    let settings = server.app.settings();
    let ip = from.0.ip().to_canonical();
    let is_proxy = settings.proxies.iter().any(|network| network.contains(&ip));
    let address = (!is_proxy).then(|| ClientAddress::of(ip));
    let limits = settings.limits;
    let permit = server.limiter.acquire(address, limits.connections, limits.connections_per_address);
    let Some(permit) = permit else {
        server.traffic.count_refused();
        if let Some(unsaid) = REFUSED.permit() {
            tracing::warn!(%ip, unsaid, "a connection was closed: there are too many (gateway.limits.connections, connections_per_address)");
        }
        return;
    };
    match PermittedStream::new(stream, permit, limits.unread_timeout) {
        Ok(stream) => drop(server.connections.spawn(serve_connection(server.clone(), stream, from))),
        Err(error) => tracing::debug!(%error, "a connection ended before it was served"),
    }
}

/// Accepts connections until the app ends. The listener itself stays open elsewhere: who connects later waits for the next process.
pub async fn serve(listener: TcpListener, server: Server) {
    let ending = server.app.ending();
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => admit(&server, stream, ConnectedFrom(from)),
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    if let Some(unsaid) = FAILED.permit() {
                        tracing::warn!(%error, unsaid, "no connection can be accepted; see the open files limit");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    };
    ending.run_until_cancelled(accepting).await;
}

/// Whether an error of accept(2) concerns the connection alone.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
