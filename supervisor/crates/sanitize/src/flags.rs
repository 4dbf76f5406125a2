//! Detects encodings that are not decoded on the way to a parser: they are reported, not changed.

use crate::encoded;
use crate::sanitizer::Sanitizer;

/// What was noticed in a text and left unchanged.
///
/// | name | meaning |
/// |---|---|
/// | `base64` | 24 and more characters of the standard or the URL alphabet in one line decode to readable text |
/// | `hex` | 32 and more hexadecimal digits do |
/// | `rot13` | with its letters rotated by 13, the text holds control syntax that it does not hold unrotated |
///
/// Readable means UTF-8 without control characters that holds control syntax, or in which three quarters of
/// the characters are letters and white space, in more than one word. So a hash, a key, an image, a
/// compressed file do not count, nor does JSON as such: a JWT, a source map, a cursor of an API. A JWT whose
/// claims hold a sentence counts.
///
/// Text that is broken into lines counts if one of its lines does. Behind base64 text may be in UTF-16, or in
/// hexadecimal digits again. Digits in pairs (`48 65`, `\x48`) and other encodings inside encodings are not
/// looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u8);

const NAMES: [&str; 3] = ["base64", "hex", "rot13"];

impl Flags {
    /// The names of the flags, in a fixed order: `base64`, `hex`, `rot13`.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().enumerate().filter(move |&(bit, _)| self.0 & (1 << bit) != 0).map(|(_, name)| name)
    }

    /// Whether nothing was noticed.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds the flags of another text.
    pub fn merge(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

impl Sanitizer {
    /// The flags of a text, raw or sanitized. Linear in its length, and fast where nothing is encoded.
    #[must_use]
    pub fn flags(&self, text: &str) -> Flags {
        let [base64, hex] = encoded::detect(text);
        let rot13 = encoded::reveals_syntax_when_rotated(text);
        Flags(u8::from(base64) | u8::from(hex) << 1 | u8::from(rot13) << 2)
    }
}

#[cfg(test)]
mod tests;
