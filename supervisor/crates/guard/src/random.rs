//! Random words that cannot be guessed.

/// 128 bits: they cannot be guessed, and no two words are ever equal in practice.
pub(crate) const BITS: usize = 128;

/// Random bytes from the operating system.
pub(crate) fn random_bytes() -> [u8; BITS / 8] {
    let mut bits = [0; BITS / 8];
    getrandom::fill(&mut bits).expect("the kernel gives random bits once it has booted");
    bits
}

/// The same in hexadecimal.
pub(crate) fn random_hex() -> String {
    hex::encode(random_bytes())
}
