//! `talon.host.v1.Host` on `host.sock`: the only way in.
//!
//! One file for each group of requests. Who asks is what the kernel says about the connection (`peer`), and how
//! much anybody may ask at once is bounded here.

mod alone;
mod call_id;
mod closing;
mod connection;
#[cfg(test)]
mod endless;
mod execute;
mod gate;
mod incoming;
mod leave;
mod narrow;
mod operate;
mod operators;
mod peer;
mod plugins;
mod raw;
mod reload;
mod server;
mod service;
mod socket;
mod status;
mod streams;

pub use talon_listen::{DRAINING, FRAME_BYTES, WINDOW_BYTES};
use talon_sanitize::{Raw, Shown};
use tonic::Status;

pub use alone::Alone;
pub use closing::{Closing, HANDING_OVER};
pub use execute::{report_on_wire, response};
pub(crate) use incoming::Doorman;
pub use incoming::{MAX_CONNECTIONS, MAX_CONNECTIONS_PER_UID, Pulse, Recognise};
pub use leave::{Asked, Leaving, asked};
pub use operators::Operators;
pub use peer::Peer;
pub use server::{ServeError, Server};
pub use service::{About, HostService};
pub use socket::{BindError, FileIdentity, HostSocket, SOCKET_NAME, SocketFile, bind_host, regroup};
pub(crate) use socket::{Living, bind_named};

/// What a request may carry beside its arguments: names, the call's id and the session context.
const REQUEST_SLACK_BYTES: usize = 64 << 10;
/// Requests of one connection at once. An agent's parallel calls share a connection; further ones wait in its own
/// client.
pub const MAX_STREAMS_PER_CONNECTION: u32 = 128;
/// Requests of one uid at once, over all its connections, from their headers to the last byte of their answers. Each
/// may hold a request that is half sent, which with the default `guard.max_argument_bytes` (1 MiB and some slack) makes
/// 272 MiB at the most.
pub const MAX_REQUESTS_PER_UID: usize = 256;
/// Requests at once, of everybody.
pub const MAX_REQUESTS: usize = 512;
/// Followers of events and logs at once, over all connections: each keeps a place in a broadcast queue.
pub const MAX_FOLLOWERS: usize = 64;
/// The longest text of a gRPC error. It travels in HTTP/2 headers, where 16 KiB break the connection; a sentence is
/// far below.
const MAX_STATUS_BYTES: usize = 2 << 10;

fn draining() -> Status {
    Status::unavailable(format!(
        "{DRAINING} and takes no new calls: try again once it has been started again"
    ))
}

/// A text that may quote others, made inert and cut so that it fits into a header.
fn status_text<'t>(text: impl Into<Raw<'t>>) -> String {
    text.into().line_within(MAX_STATUS_BYTES).into_string()
}

/// A text on its way to a client, where it is a plain string from here on. So only what is fit to be shown gets here:
/// [`Sanitized`](talon_sanitize::Sanitized) and words of our own.
fn wire(text: impl Shown) -> String {
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
