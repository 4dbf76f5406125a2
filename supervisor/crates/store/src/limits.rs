//! Every limit of the store, each with its reason. A request that exceeds one is refused as
//! [`Error::Invalid`](crate::Error::Invalid) before it reaches an engine, except for quotas, which are
//! [`Error::Quota`](crate::Error::Quota).

use std::time::Duration;

use crate::invalid::InvalidError;

/// The longest plugin id. It is also the name of a directory and of a socket, whose whole path the kernel
/// limits to 107 bytes.
pub const MAX_PLUGIN_ID_BYTES: usize = 64;
/// The longest key. Long enough for a path or a digest with a prefix, short enough that an index page holds
/// several.
pub const MAX_KEY_BYTES: usize = 512;
/// The largest value: plugins store state here, not files, and a group of commits must fit into memory.
pub const MAX_VALUE_BYTES: usize = 1024 * 1024;
/// A plugin's default quota, keys included. See [`Quota`](crate::Quota).
pub const DEFAULT_QUOTA_BYTES: u64 = 64 * 1024 * 1024;
/// How many keys a plugin may store by default.
pub const DEFAULT_QUOTA_KEYS: u64 = 100_000;

/// The largest page. A caller who asks for more gets this many, and a token for the rest.
pub const MAX_PAGE_ITEMS: u32 = 1_000;
/// The page size for a request of 0.
pub const DEFAULT_PAGE_ITEMS: u32 = 100;
/// A page ends early when its contents reach this size, since one message may be [`MAX_CONTENT_BYTES`] long,
/// one value [`MAX_VALUE_BYTES`], and a thousand of them would not fit into memory.
pub const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// How deep a ranked search can be paged. Ranks are computed anew for every page, so a page far behind costs
/// as much as all before it. A more precise query is better than more pages.
pub const MAX_SEARCH_DEPTH: u32 = 10_000;

/// After this long without a message a session is idle: long enough to read an answer or have lunch and
/// continue; short enough that "active" means that the user is present. Nothing is lost by it, and the next
/// message makes the session active again. The caller passes it to [`Sessions::idle`](crate::Sessions::idle).
pub const IDLE_AFTER: Duration = Duration::from_secs(30 * 60);

/// The longest content of a message. More than any model accepts in one.
pub const MAX_CONTENT_BYTES: usize = 1024 * 1024;
/// The longest content of a memory. It is a fact that is written into prompts, not a document; and a recall
/// compares a few hundred.
pub const MAX_MEMORY_BYTES: usize = 64 * 1024;
/// The longest JSON of a message's tool calls, and of its results.
pub const MAX_TOOL_JSON_BYTES: usize = 1024 * 1024;
/// How many messages one append takes. A turn with its tool calls is a dozen.
pub const MAX_APPEND: usize = 256;
/// The longest name: sender, channel, model, source, tag, plugin or action of a step.
pub const MAX_NAME_BYTES: usize = 256;
/// How many entries a session's metadata has.
pub const MAX_METADATA_ENTRIES: usize = 64;
/// The longest value in a session's metadata.
pub const MAX_METADATA_VALUE_BYTES: usize = 4 * 1024;
/// How many tags a memory has.
pub const MAX_TAGS: usize = 32;
/// How many steps a workflow has. A longer one is a program, and no model follows all of it.
pub const MAX_STEPS: usize = 64;
/// The longest trigger, outcome and search text.
pub const MAX_QUERY_BYTES: usize = 8 * 1024;

/// Only this many words of a text are found by a search. PostgreSQL counts positions only up to 16,383, and
/// both engines are to find the same.
pub const MAX_INDEXED_WORDS: usize = 16_000;
/// Only so many bytes of words are found: PostgreSQL stores less than a megabyte of them for one text.
pub const MAX_INDEXED_BYTES: usize = 512 * 1024;
/// Longer words are truncated in the index. PostgreSQL refuses words of 2,046 bytes; no language has one.
pub const MAX_WORD_CHARS: usize = 64;
/// How many words of a query count. Each is an index lookup.
pub const MAX_QUERY_WORDS: usize = 64;
/// How many workflows a recall compares closely. The index returns the likely ones first.
pub const MAX_RECALL_CANDIDATES: u32 = 200;
/// How many workflows a recall returns at most: they are written into a prompt.
pub const MAX_RECALLED: usize = 20;

/// How many vectors a search compares: those of the newest memories that its owner may see. 20,000 of 1,024
/// numbers are 20 MB, read and compared in some 30 ms. Older memories are found by words alone.
pub const MAX_COMPARED_VECTORS: u32 = 20_000;
/// How many numbers a vector has at most: more than any embedding model gives, and no more than `pgvector` takes.
pub const MAX_VECTOR_NUMBERS: usize = 8192;
/// How many vectors are stored at once.
pub const MAX_STORED_VECTORS: usize = 1_000;

/// How many occurrences a plan stores at once: the recorded missed ones of a job, and those that run.
pub const MAX_PLANNED: usize = 1_000;
/// The longest reason why an occurrence failed or was missed.
pub const MAX_NOTE_BYTES: usize = 4 * 1024;

/// The longest text of an action's answer that an occurrence keeps. The history is no archive: 200 runs of a job stay, and
/// what has to last belongs into the plugin's own state.
pub const MAX_RESULT_TEXT_BYTES: usize = 8 * 1024;
/// The longest structured answer, as JSON, that an occurrence keeps.
pub const MAX_RESULT_JSON_BYTES: usize = 16 * 1024;
/// How many proposed jobs all plugins have at once: 16 of each of 256 plugins.
pub const MAX_DECLARED_PROPOSALS: usize = 4_096;
/// The longest text of a proposed job: 4 KiB of arguments, with its names and times.
pub const MAX_PROPOSAL_BYTES: usize = 16 * 1024;
/// How many rejected texts of jobs are kept. 200: each is a decision by hand. Of one that is forgotten, the next
/// declaration proposes it again.
pub const MAX_REJECTED_PROPOSALS: u32 = 200;
/// How many changes of notifications are stored at once.
pub const MAX_BATCH: usize = 512;
/// The largest payload of a notification: a digest of a hundred events with summaries and fields.
pub const MAX_PAYLOAD_BYTES: usize = 256 * 1024;

/// Refuses a text that is empty or too long, or contains characters that no name has.
pub(crate) fn name(what: &'static str, text: &str) -> Result<(), InvalidError> {
    if text.is_empty() || text.len() > MAX_NAME_BYTES {
        return Err(InvalidError::new(
            what,
            format!("must have 1 to {MAX_NAME_BYTES} bytes, not {}", text.len()),
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(InvalidError::new(what, "must not hold control characters"));
    }
    Ok(())
}

/// Refuses what is longer than `limit` bytes.
pub(crate) fn size(what: &'static str, bytes: usize, limit: usize) -> Result<(), InvalidError> {
    if bytes > limit {
        return Err(InvalidError::new(what, format!("must have at most {limit} bytes, not {bytes}")));
    }
    Ok(())
}

/// Refuses more than `limit` of something.
pub(crate) fn count(what: &'static str, items: usize, limit: usize) -> Result<(), InvalidError> {
    if items > limit {
        return Err(InvalidError::new(what, format!("must be at most {limit}, not {items}")));
    }
    Ok(())
}
