//! The limits on what a model may save.

/// The most tags of a memory.
pub(super) const MAX_TAGS: usize = 8;
/// The longest tag.
pub(super) const MAX_TAG_BYTES: usize = 64;
/// The most memories that a session may save, so that a model that saves every sentence, or is made to,
/// cannot fill the store.
pub(super) const MAX_PER_SESSION: u32 = 50;
