//! The limits of a script, each with its reason.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The largest source. 1 MiB: the compiler cannot be interrupted, and this much takes it some tenths of a second.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;
/// The least memory of a machine: below that its libraries alone do not fit.
pub const MIN_MEMORY_BYTES: usize = 1 << 20;
/// The longest message that a function may give back: the longest that a person may send.
pub const MAX_MESSAGE_BYTES: usize = 256 << 10;
/// The most keys that a function may set in `ctx.metadata`, as many as a verdict may have.
pub const MAX_METADATA_KEYS: usize = 32;
/// The longest value of `ctx.metadata`, as for every hook.
pub(crate) const MAX_METADATA_VALUE_BYTES: usize = 1 << 10;
/// The longest key of `ctx.metadata`, as for every hook.
pub(crate) const MAX_METADATA_KEY_BYTES: usize = 64;
/// How many entries of a table of metadata are looked at: those that a function was given, and as many again.
pub(crate) const MAX_METADATA_SCANNED: usize = 1024;
/// The longest reason of a drop; a longer one is cut, as for every hook.
pub(crate) const MAX_REASON_CHARS: usize = 500;
/// The longest text that a scheduled task returns: more belongs into a message of its own.
pub(crate) const MAX_TEXT_BYTES: usize = 64 << 10;
/// The longest error with its traceback; the rest is cut.
pub const MAX_ERROR_BYTES: usize = 4 << 10;
/// The longest text of what a line of a [`Session`](crate::Session) returns; the rest is cut.
pub const MAX_SHOWN_BYTES: usize = 16 << 10;
/// How many lines one call may log. Further ones are counted, and one line says how many.
pub const MAX_LOG_LINES: usize = 100;
/// The longest line of `ctx.log`; the rest is cut.
pub const MAX_LOG_BYTES: usize = 2 << 10;
/// How often one call may read or write its key-values: each of them waits for another process.
pub const MAX_KV_CALLS: usize = 1000;
/// The longest key of `ctx.kv_get` and its like. With the script's name before it, it stays below what the store takes.
pub const MAX_KV_KEY_BYTES: usize = 256;
/// The longest text under a key.
pub const MAX_KV_VALUE_BYTES: usize = 256 << 10;
/// The longest prompt of `ctx.llm`: a message, and instructions about it.
pub const MAX_PROMPT_BYTES: usize = 512 << 10;
/// The longest text in the `schedule` table.
pub(crate) const MAX_SCHEDULE_BYTES: usize = 256;

/// What an operator may set for a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The most memory of its machine, in bytes; at least [`MIN_MEMORY_BYTES`] count.
    pub memory_bytes: usize,
    /// How long one call may run, and its top level. Waiting in `ctx.llm` does not count.
    pub execution: Duration,
    /// How often one call may ask a model.
    pub llm_calls: u32,
}

impl Default for Limits {
    /// 64 MB, 5 seconds, 3 questions.
    fn default() -> Self {
        Self { memory_bytes: 64 << 20, execution: Duration::from_secs(5), llm_calls: 3 }
    }
}
