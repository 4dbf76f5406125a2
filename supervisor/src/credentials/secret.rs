//! Secrets: `talon_ID_SECRET`, of which the digest of the whole is stored.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Random bytes of an id: 48 bits tell a few thousand credentials apart, and are no secret.
const ID_BYTES: usize = 6;
/// Random bytes of a secret.
const SECRET_BYTES: usize = 32;

/// The SHA-256 of a secret. A secret has 256 random bits, so that a slow hash would add nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes, if they are as many as it has.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn of_hex(text: &str) -> Option<Self> {
        Self::of_bytes(&hex::decode(text).ok()?)
    }

    pub(super) fn to_hex(self) -> String {
        hex::encode(self.0)
    }

    /// Whether both are equal; how long it takes does not tell where they differ.
    pub(super) fn matches(self, other: Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

/// A new secret.
pub(super) struct NewSecret {
    pub(super) id: String,
    /// The whole, for its owner alone.
    pub(super) text: String,
    pub(super) digest: Digest,
}

impl NewSecret {
    /// # Errors
    /// When the kernel gives no random bytes.
    pub(super) fn generate() -> Result<Self, getrandom::Error> {
        let (mut id, mut secret) = ([0; ID_BYTES], [0; SECRET_BYTES]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret)?;
        let id = hex::encode(id);
        let text = format!("talon_{id}_{}", hex::encode(secret));
        let digest = Digest(Sha256::digest(&text).into());
        Ok(Self { id, text, digest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-20
    #[test]
    fn a_secret_has_256_bits_and_matches_its_digest_alone() {
        let (one, other) = (NewSecret::generate().unwrap(), NewSecret::generate().unwrap());
        assert_eq!(one.text.rsplit('_').next().map(str::len), Some(64));
        assert!(one.text.starts_with(&format!("talon_{}_", one.id)));
        assert!(one.digest.matches(Digest::of_hex(&one.digest.to_hex()).unwrap()));
        assert!(!one.digest.matches(other.digest));
    }
}
