//! The owner of a memory.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};
use talon_store::StoredMemory;

use super::memory_index::LOCAL_TAG;

/// The prefix of the owner tag. Only this module writes such tags.
pub(super) const TAG: &str = talon_store::OWNER_TAG;
/// A longer name, or one that does not fit into a tag, is replaced by its digest.
const MAX_NAME_BYTES: usize = 128;

/// The owner tag of a sender.
pub(super) fn tag(sender: &str) -> String {
    if sender.len() <= MAX_NAME_BYTES && !sender.chars().any(char::is_control) {
        return format!("{TAG}{sender}");
    }
    format!("{TAG}#{}", hex::encode(Sha256::digest(sender)))
}

/// Whether a memory may be shown in this sender's sessions.
pub(crate) fn is_visible_to(memory: &StoredMemory, sender: &str) -> bool {
    is_shared(memory) || memory.owners().any(|of| of == tag(sender))
}

/// Whether a memory has no owner.
pub(crate) fn is_shared(memory: &StoredMemory) -> bool {
    memory.owners().next().is_none()
}

/// The memory's tags without those that only say who may see it.
pub(super) fn content_tags(memory: &StoredMemory) -> BTreeSet<&str> {
    memory.tags.iter().map(String::as_str).filter(|tag| !tag.starts_with(TAG) && *tag != LOCAL_TAG).collect()
}
