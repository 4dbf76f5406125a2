//! Whose a memory is.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};
use talon_store::StoredMemory;

/// What the tag begins with. Nobody but this module writes such a tag.
pub(super) const TAG: &str = talon_store::OWNER_TAG;
/// A longer name, or one that no tag can hold, is known by its digest.
const MAX_NAME_BYTES: usize = 128;

/// The tag of what is this sender's.
pub(super) fn tag(sender: &str) -> String {
    if sender.len() <= MAX_NAME_BYTES && !sender.chars().any(char::is_control) {
        return format!("{TAG}{sender}");
    }
    format!("{TAG}#{}", hex::encode(Sha256::digest(sender)))
}

/// Whether a memory may be shown in this sender's sessions.
pub(crate) fn is_for(memory: &StoredMemory, sender: &str) -> bool {
    is_everybodys(memory) || memory.owners().any(|of| of == tag(sender))
}

/// Whether a memory is nobody's own.
pub(crate) fn is_everybodys(memory: &StoredMemory) -> bool {
    memory.owners().next().is_none()
}

/// The tags that are the memory's own.
pub(super) fn own_tags(memory: &StoredMemory) -> BTreeSet<&str> {
    memory.tags.iter().map(String::as_str).filter(|tag| !tag.starts_with(TAG)).collect()
}
