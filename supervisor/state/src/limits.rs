//! Every limit of the service, each with its reason. The limits of keys, values and pages are in the store,
//! the time for a client's first bytes in `talon-listen`.

use std::time::Duration;

use talon_store::limits::MAX_VALUE_BYTES;

/// Sockets of plugins at once. One for each instance of a plugin; a thousand is more than one machine runs.
/// One more is not served, which is logged.
pub const MAX_SOCKETS: usize = 1024;
/// Connections of one socket at once. A plugin needs one, some clients open one a thread. One more is closed
/// at once.
pub const MAX_CONNECTIONS: usize = 32;
/// Connections of operators at once. The supervisor has one, and the command line one for itself.
pub const MAX_OPERATORS: usize = 16;
/// Requests of one connection at once. Further ones wait in the client, as HTTP/2 specifies.
pub const MAX_STREAMS: u32 = 128;
/// Requests of one plugin at once, over all its sockets, from their headers to the last byte of their
/// answers. Each answer may have a mebibyte, so this also bounds the answers that clients do not read. One
/// more gets RESOURCE_EXHAUSTED.
pub const MAX_REQUESTS: usize = 256;
/// Writes of one plugin that run in the store at once; further ones wait. This many share an fsync well, and
/// they are a quarter of what may wait there: the writes of one plugin do not block all others.
pub const MAX_WRITES: usize = 64;
/// Bytes of one plugin's unanswered requests. Sixty-four writes of the largest values at once fit in; a
/// request beyond it gets RESOURCE_EXHAUSTED.
pub const MAX_REQUEST_BYTES: usize = 72 << 20;
/// The largest message: both values of a comparison, and the key with its framing. A larger one gets
/// INVALID_ARGUMENT before it is read.
pub const MAX_MESSAGE_BYTES: usize = 2 * MAX_VALUE_BYTES + (64 << 10);
/// Headers of one request; those of Talon's clients have a few hundred bytes.
pub const MAX_HEADER_BYTES: u32 = 16 << 10;
/// HTTP/2 frames of up to 1 MiB, as on `host.sock`: with the default of 16 KiB large values take twice as
/// long.
pub const FRAME_BYTES: u32 = 1 << 20;
/// How much one stream, and one connection, may send before it is read: one message of the largest size.
pub const WINDOW_BYTES: u32 = 2 << 20;
/// The longest time for a plugin's request, from its headers to its answer. The body comes over a unix socket
/// and a write waits five seconds for another process at most, so a longer request hangs. A client may set a
/// shorter timeout.
pub const MAX_PLUGIN_TIME: Duration = Duration::from_secs(30);
/// The same for an operator, who may send or purge gigabytes.
pub const MAX_OPERATOR_TIME: Duration = Duration::from_secs(3600);
/// How long an operator's stream may pause. The sender only reads files from a local disk.
pub const MAX_PAUSE: Duration = Duration::from_secs(30);
/// How long running requests may take once a socket is detached or the process has to end. A request takes
/// milliseconds, and a write five seconds at the most, which it may wait for another process.
pub const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// How long a client whose requests are all answered may take to confirm that its connection is closed. One
/// that lives does so at once; one that is stopped never does, and loses nothing.
pub const IDLE_CLOSE_GRACE: Duration = Duration::from_millis(250);
/// The wait after `accept` failed for lack of descriptors or memory, which an immediate retry would not
/// solve.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Messages of an export or import that are buffered for the operator. Each file chunk has 64 KiB.
pub const MAX_STREAMED: usize = 16;
/// How much of a file one message of a stream carries.
pub const CHUNK_BYTES: usize = 64 << 10;
/// The largest copy that is received. State is small; a larger copy has to be restored by hand while nothing
/// runs.
pub const MAX_COPY_BYTES: u64 = 64 << 30;
