//! Connects to what a plugin asks for, if it may.

use http::StatusCode;
use talon_plugin_config::host_port::HostPort;
use talon_sanitize::{Raw, Sanitized};
use tokio::net::TcpStream;

use crate::connector::ConnectorError;
use crate::denial::Denial;
use crate::proxy_state::ProxyState;

/// The longest text of a target in messages: a whole name and its port.
const SHOWN_BYTES: usize = 270;

/// What is answered where there is no response of a target: a status and a text.
pub(crate) type Refusal = (StatusCode, String);

/// Why there is no connection to a target.
#[derive(Debug)]
pub(crate) enum TargetError {
    /// The plugin may not reach it. It was counted and reported.
    Denied(Denial),
    /// It could not be reached.
    Failed {
        /// The status of HTTP for it.
        status: StatusCode,
        /// A sentence that names the target and ends with what to do.
        reason: String,
    },
}

/// Connects to a target that is on the list.
pub(crate) async fn reach(place: &HostPort, shared: &ProxyState) -> Result<TcpStream, TargetError> {
    let denied = |denied: Denial| {
        shared.counters.denied();
        (shared.on_denied)(&denied);
        TargetError::Denied(denied)
    };
    if !shared.connector.allows(place) {
        return Err(denied(Denial::NotListed { place: sanitized(place) }));
    }
    let failed = |status, reason| TargetError::Failed { status, reason };
    shared.connector.connect(place).await.map_err(|error| match error {
        ConnectorError::NotPublic(addresses) => {
            let addresses = addresses.into_iter().map(|ip| (ip, place.port).into()).collect();
            denied(Denial::NotPublic { place: sanitized(place), addresses })
        }
        ConnectorError::Lookup(error) => {
            failed(StatusCode::BAD_GATEWAY, format!("cannot resolve {place}: {error} (check the name)"))
        }
        ConnectorError::Connect(error) => failed(
            StatusCode::BAD_GATEWAY,
            format!("cannot connect to {place}: {error} (check that it runs)"),
        ),
        ConnectorError::Timeout(what) => failed(
            StatusCode::GATEWAY_TIMEOUT,
            format!("cannot connect to {place}: {what} (try again later)"),
        ),
    })
}

/// Parses what a plugin wrote as a target.
pub(crate) fn parse_target(asked: &str) -> Result<HostPort, Refusal> {
    HostPort::parse(asked).map_err(|problem| {
        (
            StatusCode::BAD_REQUEST,
            format!("cannot connect to {:?}: {problem}", Raw::from(asked).line_within(SHOWN_BYTES)),
        )
    })
}

/// A requested target as it was parsed.
fn sanitized(place: &HostPort) -> Sanitized {
    Raw::of(place).line()
}
