//! The service's limits, each with its reason. The limits of turns and of their followers are in `turns`.

use std::time::Duration;

/// The longest message of a person; the protocol documents it, too. 256 KiB: more than any model accepts.
pub(super) const MAX_TEXT_BYTES: usize = 256 << 10;
/// The largest request: a text, a JSON Schema of the same size, and the fields around them. A larger one gets
/// OUT_OF_RANGE before it is read completely.
pub(super) const MAX_REQUEST_BYTES: usize = 1 << 20;
/// The largest message to a client. A page of a session's messages ends at 4 MiB, and its last message may
/// have three more.
pub(super) const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Connections at once. As many as `host.sock` has; one more is closed, which is logged.
pub(super) const MAX_CONNECTIONS: usize = 256;
/// Connections that wait to be accepted, which happens at once; if more wait, the server hangs.
pub(super) const MAX_ACCEPTED: usize = 64;
/// Requests of one connection at once. Further ones wait in the client, as HTTP/2 has it.
pub(super) const MAX_STREAMS: u32 = 64;
/// Requests of one user at once, over all connections, from their headers to the last byte of their answers.
/// One more gets RESOURCE_EXHAUSTED.
pub(super) const MAX_REQUESTS_PER_UID: usize = 128;
/// Requests at once, of everybody: half-sent ones hold 256 MiB at the most.
pub(super) const MAX_REQUESTS: usize = 256;
/// Headers of one request; ours have a few hundred bytes.
pub(super) const MAX_HEADER_BYTES: u32 = 16 << 10;
/// The longest channel: a word such as `cli`.
pub(super) const MAX_CHANNEL_BYTES: usize = 64;
/// The largest page of sessions; the wire says so, too.
pub(super) const MAX_SESSIONS: u32 = 200;
/// The page of sessions of somebody who asks for 0.
pub(super) const DEFAULT_SESSIONS: u32 = 50;
/// How long to wait for a cancelled turn, which drops its connections and writes its end. A slower one
/// continues in the background.
pub(super) const CANCEL_WAIT: Duration = Duration::from_secs(5);
/// Patterns of one list of what may be called. 64: more is a configuration, and belongs there
/// (`agent.allow`).
pub(super) const MAX_PATTERNS: usize = 64;
