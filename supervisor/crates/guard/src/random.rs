//! Words that nobody guesses.

/// 128 bits: nobody guesses them, and no two of all the words there will ever be are the same.
pub(crate) const BITS: usize = 128;

/// Fresh bits of the operating system.
pub(crate) fn bits() -> [u8; BITS / 8] {
    let mut bits = [0; BITS / 8];
    getrandom::fill(&mut bits).expect("the kernel gives random bits once it has booted");
    bits
}

/// The same in hexadecimal.
pub(crate) fn word() -> String {
    hex::encode(bits())
}
