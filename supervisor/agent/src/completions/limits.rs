//! Every limit of the service that no grant sets, each with its reason.

use std::time::Duration;

/// The largest request. 1 MiB: more text than any model accepts. A larger one gets INVALID_ARGUMENT before it is read.
pub(super) const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Messages of one request: a long conversation.
pub(super) const MAX_MESSAGES: usize = 256;
/// Texts before which an answer ends, and the bytes of each: providers take 4 to 16 short ones.
pub(super) const MAX_STOPS: usize = 16;
/// See [`MAX_STOPS`].
pub(super) const MAX_STOP_BYTES: usize = 256;
/// Sockets at once. One for each process of a plugin; a thousand is more than one machine runs. One more is not
/// served, which is logged.
pub(super) const MAX_SOCKETS: usize = 1024;
/// Connections of one socket at once. A plugin needs one, some clients open one a thread. One more is closed at once.
pub(super) const MAX_CONNECTIONS: usize = 32;
/// Requests of one connection at once. Further ones wait in the client, as HTTP/2 has it.
pub(super) const MAX_STREAMS: u32 = 64;
/// Headers of one request; those of Talon's clients have a few hundred bytes.
pub(super) const MAX_HEADER_BYTES: u32 = 16 << 10;
/// How many requests of a plugin there may be, from their headers to the last byte of their answers, for each that may
/// run: one runs, four wait. One more gets RESOURCE_EXHAUSTED.
pub(super) const REQUESTS_PER_PLACE: usize = 5;
/// Requests of a plugin beside those: of what is granted, which take no place.
pub(super) const MORE_REQUESTS: usize = 8;
/// The wait after `accept` failed for lack of descriptors, which an immediate retry would not solve.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
