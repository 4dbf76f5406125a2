//! The random word that makes a delimiter one of a kind.

use crate::body::Body;
use crate::random::BITS;

/// Random bits in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nonce(String);

impl Nonce {
    /// How long it is, in characters.
    pub(super) const LENGTH: usize = BITS / 4;

    /// One that occurs in none of these texts. What is added to a further draw makes it end also with a source that
    /// repeats itself.
    pub(super) fn not_in<'a, T>(texts: impl Fn() -> T, mut random: impl FnMut() -> [u8; BITS / 8]) -> Self
    where
        T: Iterator<Item = &'a Body>,
    {
        let mut draw = 0;
        loop {
            let bits = u128::from_be_bytes(random()).wrapping_add(draw);
            let nonce = hex::encode(bits.to_be_bytes());
            if !texts().any(|body| body.whole().contains(&nonce)) {
                return Self(nonce);
            }
            draw += 1;
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}
