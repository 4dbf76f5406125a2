//! The length of an n-gram.

/// The length of the n-gram that one fingerprint stands for, in normalized bytes. Shorter ones occur by
/// chance: the words "the following files were" are 21 letters.
pub(super) const GRAM_BYTES: usize = 24;
