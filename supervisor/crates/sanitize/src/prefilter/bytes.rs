//! Predicates on bytes that all prefilters share.

/// How many bytes at the beginning belong to a class.
pub(super) fn length(bytes: &[u8], is_member: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().position(|byte| !is_member(byte)).unwrap_or(bytes.len())
}

/// Whether the byte may begin a character that folds to something else.
pub(super) fn is_ambiguous(byte: u8) -> bool {
    matches!(byte, 0x80..|b'&'| b'\\' | b'%')
}
