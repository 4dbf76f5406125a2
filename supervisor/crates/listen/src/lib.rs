//! Limits for a gRPC server on a unix socket, independent of the service.
//!
//! The clients are foreign programs. So each has to start speaking in time, an answer holds its permit until
//! the client has received it, and clients cannot fill the log. The numbers are up to each server, since
//! their clients differ.
//!
//! | type | what it limits |
//! |---|---|
//! | [`PrefaceTimeout`] | how long a new connection may be silent |
//! | [`PrefaceTimeout`] | how many frames it may send that are no part of a call |
//! | [`BodyTimeout`] | how long a request's body may take |
//! | [`PlaceLimiter`] | how many of something there are, in total and per user, with limits that may change |
//! | [`ConnectionLimiter`] | how many connections and requests there are, with limits that do not |
//! | [`ByteLimiter`] | how many bytes of requests are held that are not whole, in total and per user |
//! | [`PermitBody`] | answers that the client does not receive: each holds its permit until then |
//! | [`LogThrottle`] | repeated log lines |
//!
//! On connections of the supervisor's own making, [`delegation`] says for whom a request is.
//!
//! For clients: `trust` checks who listens on a socket, [`ShortPath`] connects to long paths, and
//! [`DRAINING`] is the error of a supervisor that is stopping.

mod body_timeout;
mod byte_limiter;
mod connection_limiter;
pub mod delegation;
mod path;
mod permit_body;
mod place_limiter;
mod preface_timeout;
mod throttle;
mod trust;

pub use body_timeout::{BODY_TIMEOUT, BodyTimeout, body_timed_out};
pub use byte_limiter::{ByteLimiter, BytePermit, UnreadBody};
pub use connection_limiter::{ConnectionLimiter, ConnectionPermit};
pub use path::ShortPath;
pub use permit_body::PermitBody;
pub use place_limiter::{PlaceLimitError, PlaceLimiter, PlaceLimits, PlacePermit};
pub use preface_timeout::{PREFACE_TIMEOUT, PrefaceTimeout};
pub use throttle::LogThrottle;
pub use trust::{UntrustedListenerError, check_listener};

/// HTTP/2 frames of up to 1 MiB, on both ends of `host.sock`: with the default of 16 KiB a 64 KiB answer
/// takes twice as long.
pub const FRAME_BYTES: u32 = 1 << 20;
/// The flow control window of a stream, and of a connection: a whole request of the largest size.
pub const WINDOW_BYTES: u32 = 2 << 20;

/// Start of the error of a supervisor that is stopping, with the code UNAVAILABLE. The request was not
/// started, so its client may always repeat it.
pub const DRAINING: &str = "the supervisor is draining";
