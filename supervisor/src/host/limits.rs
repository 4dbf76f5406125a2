//! The limits on requests to `host.sock`.

use std::time::Duration;

/// The size of a request without its arguments: names, the call's id and the session context.
pub(super) const REQUEST_SLACK_BYTES: usize = 64 << 10;
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

/// How long connections may take to close once all their requests are answered. A client needs a moment to
/// answer the GOAWAY; one that says nothing (stopped, hung, or connected without a request) must not hold up
/// the end of this supervisor, and with it the start of the next.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
