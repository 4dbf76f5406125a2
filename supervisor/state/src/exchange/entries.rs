//! The entries of a plugin as YAML: a map of keys and texts.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};
use talon_store::Key;
use talon_store::limits::MAX_VALUE_BYTES;

use super::excerpt::excerpt;
use super::node::{Mark, Node, Problem};

/// The keys of a file, as prefixes of their digests: there may be a million of them.
#[derive(Debug, Default)]
pub(super) struct SeenKeys(HashSet<[u8; 16]>);

impl SeenKeys {
    fn insert(&mut self, key: &Key) -> bool {
        let digest = Sha256::digest(key.as_bytes());
        let mut short = [0; 16];
        short.copy_from_slice(&digest[..16]);
        self.0.insert(short)
    }
}

/// An entry, and the position of its key.
pub(super) type Entry = (Mark, Key, Vec<u8>);

/// Reads an entry. Returns its name for reports, and the entry.
pub(super) fn read(key: Node, value: Node, seen: &mut SeenKeys) -> (String, Result<Entry, Problem>) {
    let at = key.at;
    let key = match key.text() {
        Ok(key) => key,
        Err(problem) => {
            return (String::new(), Err(Problem { reason: format!("a key {}", problem.reason), ..problem }));
        }
    };
    let record = excerpt(&key);
    (record, check(at, key, value, seen))
}

/// The bounds of the store, and that the key is new.
fn check(at: Mark, key: String, value: Node, seen: &mut SeenKeys) -> Result<Entry, Problem> {
    let key = Key::new(key).map_err(|error| Problem { at, reason: error.to_string() })?;
    if !seen.insert(&key) {
        return Err(Problem { at, reason: "the key stands twice; the first one counts".into() });
    }
    let value_at = value.at;
    let value = value
        .bytes()
        .map_err(|problem| Problem { reason: format!("the value {}", problem.reason), ..problem })?;
    if value.len() > MAX_VALUE_BYTES {
        let reason = format!("a value must have at most {MAX_VALUE_BYTES} bytes, not {}", value.len());
        return Err(Problem { at: value_at, reason });
    }
    Ok((at, key, value))
}
