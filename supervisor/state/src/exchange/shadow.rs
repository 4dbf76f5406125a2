//! The shadow loop as YAML: what the agent keeps of persons, ghosts and the log, by its own keys.

use super::entries::{self, Entry, SeenKeys};
use super::node::{Node, Problem};

/// What is taken and given. Goals of turns that are to begin are not: an import begins nothing.
const KINDS: [&str; 3] = ["sender/", "ghost/", "log/"];

/// Whether a key is exported.
pub(super) fn is_exported(key: &str) -> bool {
    KINDS.iter().any(|kind| key.starts_with(kind) && key.len() > kind.len())
}

/// Reads an entry. Returns its name for reports, and the entry.
pub(super) fn read(key: Node, value: Node, seen: &mut SeenKeys) -> (String, Result<Entry, Problem>) {
    let (record, entry) = entries::read(key, value, seen);
    let checked = entry.and_then(|(at, key, value)| {
        if is_exported(key.as_str()) {
            return Ok((at, key, value));
        }
        Err(Problem { at, reason: "is none of sender/NAME, ghost/ID and log/ID".to_owned() })
    });
    (record, checked)
}
