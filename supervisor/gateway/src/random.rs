//! Random ids: nanoids with a prefix that says of what they are.

/// The letters of an id: 64 of them, so that 6 random bits choose one without bias.
const LETTERS: &[u8; 64] = b"useandom-26T198340PX75pxJACKVERYMINDBUSHWOLF_GQZbfghjklqvwyzrict";
/// How many random letters an id has: 126 bits, as nanoids have by default.
const LENGTH: usize = 21;

/// A new id, such as `req_V1StGXR8_Z5jdHi6B-myT`.
#[must_use]
pub(crate) fn id(prefix: &str) -> String {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes once it has started");
    id_of(prefix, &bytes)
}

/// The id of these bytes, of which it takes as many as an id has letters.
#[must_use]
pub(crate) fn id_of(prefix: &str, bytes: &[u8]) -> String {
    let letters = bytes.iter().take(LENGTH).map(|byte| char::from(LETTERS[usize::from(byte & 63)]));
    format!("{prefix}_{}", letters.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_have_one_form() {
        let (one, other) = (id("req"), id("req"));
        assert_ne!(one, other);
        assert_eq!(one.len(), "req_".len() + LENGTH);
        let distinct: std::collections::BTreeSet<_> = LETTERS.iter().collect();
        assert_eq!(distinct.len(), 64, "a letter that stands twice would come twice as often");
    }
}
