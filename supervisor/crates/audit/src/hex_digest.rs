//! Hashes in hexadecimal digits.

use sha2::{Digest as _, Sha256};

/// How many digits a hash has.
pub(crate) const HEX_BYTES: usize = 64;

/// A hash in hexadecimal. Written in place: `hex::encode`'s character iterator takes longer than the rest of
/// a line.
pub(crate) fn hex_digits(hash: [u8; 32]) -> [u8; HEX_BYTES] {
    let mut digits = [0; HEX_BYTES];
    hex::encode_to_slice(hash, &mut digits).expect("each byte has two digits");
    digits
}

/// The SHA-256 of these bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    String::from_utf8(hex_digits(Sha256::digest(bytes).into()).into()).expect("digits are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_as_sha256sum_has_it() {
        assert_eq!(sha256(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
