//! Which bytes a class and a set stand for. Letters and their like are those of ASCII, as in the C locale.

/// The byte that gives the next one another meaning.
pub(super) const ESCAPE: u8 = b'%';

/// Whether a byte is of the class that stands after `%`. What is no letter of a class stands for itself.
pub(super) fn is_in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'g' => byte.is_ascii_graphic(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        // With the vertical tab.
        b's' => matches!(byte, b'\t'..=b'\r' | b' '),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return byte == class,
    };
    is_in == class.is_ascii_lowercase()
}

/// Whether a byte is in a set: what stands between `[` and `]`.
pub(super) fn is_in_set(byte: u8, set: &[u8]) -> bool {
    let (set, sign) = match set {
        [b'^', rest @ ..] => (rest, false),
        _ => (set, true),
    };
    let mut at = 0;
    while let Some(&first) = set.get(at) {
        let fits = match (first, set.get(at + 1), set.get(at + 2)) {
            (ESCAPE, class, _) => {
                at += 1;
                // The end of `[a-%%]`: there Luau reads the bracket that closes the set.
                is_in_class(byte, class.copied().unwrap_or(b']'))
            }
            (_, Some(b'-'), Some(&last)) => {
                at += 2;
                first <= byte && byte <= last
            }
            _ => first == byte,
        };
        if fits {
            return sign;
        }
        at += 1;
    }
    !sign
}
