//! Normalizes one character: the lower case of letters and digits of every script.
//!
//! Looking a letter up in the Unicode tables takes some twenty times as long as copying it. So the letters
//! that make up most text beyond ASCII have fast paths: a table for two-byte characters (Cyrillic, Greek,
//! Arabic, Hebrew, accents), a range for Chinese, Japanese and Korean.

use std::sync::LazyLock;

/// More than the longest result for one character.
pub(super) const MAX_LOWER: usize = 16;

/// The characters that UTF-8 writes in two bytes.
const TWO_BYTES: std::ops::Range<u32> = 0x80..0x800;

/// For each of [`TWO_BYTES`] the two bytes of its lower case, [`NOT_COUNTED`] or [`OTHER_LENGTH`].
static LOWER: LazyLock<[[u8; 2]; TWO_BYTES.end as usize]> = LazyLock::new(|| {
    let mut table = [NOT_COUNTED; TWO_BYTES.end as usize];
    for c in TWO_BYTES.filter_map(char::from_u32) {
        let mut lower = [0; MAX_LOWER];
        table[c as usize] = match write_lower_unicode(c, &mut lower) {
            0 => NOT_COUNTED,
            2 => [lower[0], lower[1]],
            _ => OTHER_LENGTH,
        };
    }
    table
});

/// The character is not a letter or digit.
const NOT_COUNTED: [u8; 2] = [0, 0];

/// Its lower case has another length.
const OTHER_LENGTH: [u8; 2] = [1, 0];

/// Writes the lower case of a letter or digit, and returns its length. Up to [`MAX_LOWER`] bytes may be
/// written.
#[inline]
pub(super) fn write_lower(c: char, to: &mut [u8]) -> usize {
    match c {
        '\0'..='\x7f' => {
            to[0] = c.to_ascii_lowercase() as u8;
            usize::from(c.is_ascii_alphanumeric())
        }
        '\u{80}'..'\u{800}' => match LOWER[c as usize] {
            NOT_COUNTED => 0,
            OTHER_LENGTH => write_lower_unicode(c, to),
            two => {
                to[..2].copy_from_slice(&two);
                2
            }
        },
        // Kana, ideographs, syllables of Hangul: all of them are letters, and there is no case.
        'ぁ'..='ゖ' | 'ァ'..='ヺ' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '가'..='힣' => {
            c.encode_utf8(to).len()
        }
        // Dashes, quotes and dots; stops of Chinese and Japanese.
        '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{3004}' | '\u{ff01}'..='\u{ff0f}' => 0,
        _ => write_lower_unicode(c, to),
    }
}

/// The same with the Unicode tables.
fn write_lower_unicode(c: char, to: &mut [u8]) -> usize {
    if !c.is_alphanumeric() {
        return 0;
    }
    let mut end = 0;
    for lower in c.to_lowercase() {
        end += lower.encode_utf8(&mut to[end..]).len();
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_becomes_what_unicode_says() {
        for c in '\0'..=char::MAX {
            let (mut to, mut slowly) = ([0; MAX_LOWER], [0; MAX_LOWER]);
            let (bytes, expected) = (write_lower(c, &mut to), write_lower_unicode(c, &mut slowly));
            assert_eq!(to[..bytes], slowly[..expected], "{c:?}");
        }
    }

    #[test]
    fn a_character_in_lower_case_is_half_as_long_again_at_the_most_and_has_room() {
        for c in '\0'..=char::MAX {
            let lower: usize = c.to_lowercase().map(char::len_utf8).sum();
            assert!(lower < MAX_LOWER && lower * 2 <= c.len_utf8() * 3, "{c:?}");
        }
    }
}
