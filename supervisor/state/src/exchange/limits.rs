//! Every limit of the exchange. What one record may be is the store's to say: [`talon_store::limits`].

/// The largest file that is read: a plugin's quota four times over. A larger one is refused as a whole, before it is
/// read; whoever receives a file should stop here too.
pub const MAX_FILE_BYTES: usize = 256 * 1024 * 1024;
/// How much of a file one chunk carries: well below what a message may have, and enough that there are few.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// The longest path of a file that is read. What is longer is refused, unread.
pub const MAX_PATH_BYTES: usize = 1024;
/// The deepest nesting that is read: what JSON may have in a message ([`MAX_JSON_DEPTH`]), and the levels around it.
pub const MAX_DEPTH: usize = 140;
/// The deepest JSON of a message. The store's own reader refuses more, so a deeper one could never be read again.
pub const MAX_JSON_DEPTH: usize = 127;
/// What one record (a key with its value, a memory, a message) may weigh while it is read: the largest message that the
/// store takes, with room for how it is written. A heavier one is refused alone.
pub const MAX_RECORD_WEIGHT: usize = 16 * 1024 * 1024;
/// How many records of one file are read. What comes after them is refused, in one report: a plugin's quota is a tenth
/// of it.
pub const MAX_RECORDS: usize = 1_000_000;
/// How many writes are on their way at once: the store commits them in groups, so that they share the disk's
/// confirmation.
pub(super) const IN_FLIGHT: usize = 64;
/// How many records are read ahead of the writes. Each may weigh [`MAX_RECORD_WEIGHT`].
pub(super) const READ_AHEAD: usize = 4;
/// How many records an export asks for at once.
pub(super) const PAGE: u32 = 500;
/// How much of a foreign text a report shows.
pub(super) const SHOWN_CHARS: usize = 120;
/// How much of a path a report shows: all of it, where directories have names as long as file systems allow.
pub(super) const SHOWN_PATH_CHARS: usize = 300;
/// How many kinds of left-out fields are told apart in a file; further ones are counted together.
pub(super) const MAX_LEFT_OUT: usize = 32;
/// A key that takes more characters is written with `? `: readers of YAML look no further for the colon than 1,024.
pub(super) const MAX_SIMPLE_KEY: usize = 1000;
/// How long the lines of base64 are.
pub(super) const BASE64_LINE: usize = 76;
