//! Derives ids for records without a valid one: the same each time, so that a second import finds the first
//! one's records.

use sha2::{Digest as _, Sha256};
use talon_store::Timestamp;
use ulid::Ulid;

/// An id made of the time of creation, so that ids sort by it, and 80 bits of a digest.
pub(super) fn derive_id(kind: &str, at: Timestamp, parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    digest.update(kind);
    for part in parts {
        // With their lengths, so that different lists of parts never hash the same bytes.
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let digest = digest.finalize();
    let mut random = [0; 16];
    random[6..].copy_from_slice(&digest[..10]);
    Ulid::from_parts(at.as_millis().unsigned_abs(), u128::from_be_bytes(random)).to_string()
}
