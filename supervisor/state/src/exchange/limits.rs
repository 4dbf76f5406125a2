//! Every limit of the exchange. The limits of one record are in the store: [`talon_store::limits`].

use talon_store::Quota;

/// The largest file that is read: a plugin's quota four times over. A larger one is refused as a whole,
/// before it is read; the receiver of a file should stop here too.
pub const MAX_FILE_BYTES: usize = 256 * 1024 * 1024;
/// The size of a file's chunks: well below the limit of a message, and large enough that there are few.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// The longest path of a file that is read. A file with a longer one is refused unread.
pub const MAX_PATH_BYTES: usize = 1024;
/// The deepest nesting that is read: that of JSON in a message ([`MAX_JSON_DEPTH`]), and the levels around
/// it.
pub const MAX_DEPTH: usize = 140;
/// The deepest JSON of a message. The store's own parser refuses more, so a deeper one could never be read
/// again.
pub const MAX_JSON_DEPTH: usize = 127;
/// The largest memory use of one record (a key with its value, a memory, a message) while it is read: the
/// largest message that the store accepts, with room for its encoding. Only the larger record is refused.
pub const MAX_RECORD_WEIGHT: usize = 16 * 1024 * 1024;
/// How many records of one file are read. The ones after them are refused, in one report: a plugin's quota is
/// a tenth of it.
pub const MAX_RECORDS: usize = 1_000_000;
/// What the images and files of all sessions may have: the most that the agent can be configured to keep
/// (`agent.media.total_bytes`), since its configuration is not known here.
pub(super) const MEDIA_QUOTA: Quota = Quota { bytes: 1 << 40, keys: 1_000_000 };
/// How many writes run at once: the store commits them in groups, so that they share an fsync.
pub(super) const IN_FLIGHT: usize = 64;
/// How many records are parsed ahead of the writes. Each may weigh [`MAX_RECORD_WEIGHT`].
pub(super) const READ_AHEAD: usize = 4;
/// How many records an export requests at once.
pub(super) const PAGE: u32 = 500;
/// How many characters of a foreign text a report shows.
pub(super) const EXCERPT_CHARS: usize = 120;
/// How many characters of a path a report shows: all of it, even with the longest directory names that file
/// systems allow.
pub(super) const PATH_EXCERPT_CHARS: usize = 300;
/// How many kinds of omitted fields a file's report distinguishes; further ones are counted together.
pub(super) const MAX_OMITTED: usize = 32;
