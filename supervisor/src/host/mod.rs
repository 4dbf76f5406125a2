//! `talon.host.v1.Host` on `host.sock`: the supervisor's API.
//!
//! One file for each group of requests. Kernel credentials identify the client (`peer`), and the limits on
//! concurrent requests are set here.

mod accept;
mod agent_connection;
mod authorization;
mod call_id;
mod closing;
mod connection;
mod execute;
mod exit_requests;
mod gate;
mod operate;
mod peer;
#[cfg(test)]
mod pending_host;
mod plugins;
mod raw_answers;
mod reload;
mod server;
mod service;
mod socket;
mod state_proxy;
mod status;
mod streams;

pub use talon_listen::{DRAINING, FRAME_BYTES, WINDOW_BYTES};
use talon_sanitize::{Raw, SafeDisplay};
use tonic::Status;

pub(crate) use accept::Acceptor;
pub use accept::{LivenessProbe, MAX_CONNECTIONS, MAX_CONNECTIONS_PER_UID, PeerClassifier};
pub use agent_connection::AgentConnection;
pub use closing::{HANDING_OVER, StreamCloser};
pub use execute::{report_on_wire, response};
pub use exit_requests::{ExitRequest, ExitSender, exit_channel};
pub use peer::Peer;
pub use server::{ServeError, Server};
pub use service::{HostService, SupervisorInfo};
pub use socket::{BindError, FileIdentity, HostSocket, SOCKET_NAME, SocketFile, bind_host, set_group};
pub(crate) use socket::{LiveSocket, bind_named};
pub use state_proxy::StateProxy;

/// The size of a request without its arguments: names, the call's id and the session context.
const REQUEST_SLACK_BYTES: usize = 64 << 10;
/// Maximum concurrent requests of one connection. An agent's parallel calls share a connection; further ones
/// wait in its client.
pub const MAX_STREAMS_PER_CONNECTION: u32 = 128;
/// Maximum concurrent requests of one uid over all its connections, each from its headers to the last byte of
/// its answer. Each may hold a half-sent request; with the default `guard.max_argument_bytes` (1 MiB and some
/// slack) that is 272 MiB at most.
pub const MAX_REQUESTS_PER_UID: usize = 256;
/// Maximum concurrent requests of all clients.
pub const MAX_REQUESTS: usize = 512;
/// Maximum concurrent streams of events and logs, over all connections: each holds a position in a broadcast
/// queue.
pub const MAX_FOLLOWERS: usize = 64;
/// Maximum length of a gRPC error text. It travels in HTTP/2 headers, where 16 KiB break the connection; a
/// sentence is far below.
const MAX_STATUS_BYTES: usize = 2 << 10;

fn draining() -> Status {
    Status::unavailable(format!(
        "{DRAINING} and takes no new calls: try again once it has been started again"
    ))
}

/// Neutralizes a text that may contain untrusted parts, and cuts it so that it fits into a header.
fn status_text<'t>(text: impl Into<Raw<'t>>) -> String {
    text.into().line_within(MAX_STATUS_BYTES).into_string()
}

/// Converts a text for a client to a plain string. Only displayable text is accepted:
/// [`Sanitized`](talon_sanitize::Sanitized) and the supervisor's own constants.
fn wire(text: impl SafeDisplay) -> String {
    text.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_texts_fit_into_a_header() {
        assert_eq!(status_text("short"), "short");
        assert_eq!(status_text("a <think>\n\u{1b}[2J"), "a <·think>\\n␛[2J");
        let cut = status_text("ä".repeat(MAX_STATUS_BYTES));
        assert!(cut.len() <= MAX_STATUS_BYTES + '…'.len_utf8() && cut.ends_with("ä…"), "{}", cut.len());
    }
}
