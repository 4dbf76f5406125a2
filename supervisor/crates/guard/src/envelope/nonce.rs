//! The random nonce that makes a delimiter unique.

use crate::body::Body;
use crate::random::BITS;

/// Random bits in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nonce([u8; Nonce::LENGTH]);

impl Nonce {
    /// Its length in characters.
    pub(super) const LENGTH: usize = BITS / 4;

    /// A nonce that occurs in none of these texts. A counter is added to each further draw, so that the
    /// search ends even with a source that repeats itself.
    pub(super) fn absent_from<'a, T>(
        texts: impl Fn() -> T,
        mut random: impl FnMut() -> [u8; BITS / 8],
    ) -> Self
    where
        T: Iterator<Item = &'a Body>,
    {
        let mut draw = 0;
        loop {
            let bits = u128::from_be_bytes(random()).wrapping_add(draw);
            let mut digits = [0; Self::LENGTH];
            hex::encode_to_slice(bits.to_be_bytes(), &mut digits).expect("each byte has two digits");
            let nonce = Self(digits);
            if !texts().any(|body| body.whole().contains(nonce.as_str())) {
                return nonce;
            }
            draw += 1;
        }
    }

    pub(super) fn as_str(&self) -> &str {
        str::from_utf8(&self.0).expect("digits are ASCII")
    }
}
