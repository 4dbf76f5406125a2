//! Keys of what is remembered by a text that is not kept.

use std::hash::{BuildHasher as _, Hash, RandomState};

/// A key of 128 bits: no two values are taken for the same.
pub(crate) type CacheKey = [u64; 2];

/// Makes keys, which differ in each process, so that nobody can make two values of one key.
#[derive(Debug, Default)]
pub(crate) struct CacheKeys([RandomState; 2]);

impl CacheKeys {
    /// The key of a value.
    pub(crate) fn of(&self, value: impl Hash) -> CacheKey {
        self.0.each_ref().map(|hasher| hasher.hash_one(&value))
    }
}
