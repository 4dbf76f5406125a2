//! The service's limits, each with its reason. The limits of turns and of their followers are in `turns`.

use talon_agent_settings::MAX_REQUEST_IMAGE_BYTES;

/// The longest message of a person; the protocol documents it, too. 256 KiB: more than any model accepts.
pub(super) const MAX_TEXT_BYTES: usize = 256 << 10;
/// The largest request without images: a text, a JSON Schema of the same size, and the fields around them.
pub(super) const MAX_PLAIN_REQUEST_BYTES: usize = 1 << 20;
/// The largest request: images as well. A larger one gets OUT_OF_RANGE before it is read completely.
pub(super) const MAX_REQUEST_BYTES: usize = MAX_PLAIN_REQUEST_BYTES + MAX_REQUEST_IMAGE_BYTES as usize;
/// The largest message to a client. A page of a session's messages ends at 4 MiB, and its last message may
/// have three more.
pub(super) const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Connections beside those of clients (`agent.limits.connections`): the gateway's, and the supervisor's own. One more is closed, which is
/// logged.
pub(super) const OTHER_CONNECTIONS: usize = 16;
/// Bytes of requests that are not read to their ends, of everybody: an eighth of what the process may have. A request that needs more gets
/// RESOURCE_EXHAUSTED, and may be sent again at once. How many may be answered at once is configured (`agent.limits`).
pub(super) const MAX_UNREAD_BYTES: usize = 256 << 20;
/// The same of one user: 10 of the largest, so that others have room.
pub(super) const MAX_UNREAD_BYTES_OF_ONE: usize = 96 << 20;
/// Headers of one request; ours have a few hundred bytes.
pub(super) const MAX_HEADER_BYTES: u32 = 16 << 10;
/// The longest channel: a word such as `cli`.
pub(super) const MAX_CHANNEL_BYTES: usize = 64;
/// The largest page of sessions; the wire says so, too.
pub(super) const MAX_SESSIONS: u32 = 200;
/// The page of sessions of somebody who asks for 0.
pub(super) const DEFAULT_SESSIONS: u32 = 50;
/// Cursors of one request to follow; the protocol documents it, too. 4096: each is looked up once.
pub(super) const MAX_CURSORS: usize = 4096;
/// The longest name that a client gives its message, and the longest of who speaks; the protocol documents it, too.
pub(super) const MAX_CLIENT_ID_BYTES: usize = 128;
/// What a client notes beside a message: entries, characters of a key, and of a value; the protocol documents it, too. As many as OpenAI's
/// API takes, whose clients send it.
pub(super) const MAX_MESSAGE_METADATA: usize = 16;
/// See [`MAX_MESSAGE_METADATA`].
pub(super) const MAX_METADATA_KEY_CHARS: usize = 64;
/// See [`MAX_MESSAGE_METADATA`].
pub(super) const MAX_METADATA_VALUE_CHARS: usize = 512;
/// Texts before which an answer ends, and the bytes of each; the protocol documents it, too. 4: no provider takes fewer.
pub(super) const MAX_STOPS: usize = 4;
/// See [`MAX_STOPS`].
pub(super) const MAX_STOP_BYTES: usize = 200;
/// Patterns of one list of what may be called. 64: more is a configuration, and belongs there
/// (`agent.allow`).
pub(super) const MAX_PATTERNS: usize = 64;
/// Entries of metadata that clients set at once: half of what the store has for a session, of which the agent needs
/// a few.
pub(super) const MAX_NOTED: usize = talon_store::limits::MAX_METADATA_ENTRIES / 2;
