//! Names that do not collide.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Sixteen random hexadecimal digits. Not for secrets: what they name lies in directories of mode 0700, or
/// has mode 0600 itself.
pub(crate) fn random_name() -> String {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}
