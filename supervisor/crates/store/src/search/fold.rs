//! Accents, capitals and widths do not count.

use unicode_normalization::UnicodeNormalization as _;

/// A text as it is compared. Only the accents of European scripts are dropped: a voicing mark in Japanese or a vowel sign
/// in Thai makes another letter, not the same one with an ornament.
pub(crate) fn fold(text: &str) -> String {
    let bare = text.nfkd().filter(|c| !('\u{300}'..='\u{36f}').contains(c));
    let mut folded = String::with_capacity(text.len());
    for character in bare.nfc().flat_map(char::to_lowercase) {
        match undecomposed(character) {
            Some(plain) => folded.push_str(plain),
            // The dot of İ, which its small letter brings back.
            None if character == '\u{307}' => {}
            None => folded.push(character),
        }
    }
    folded
}

/// Letters that people type without their ornament, although Unicode knows no parts of them.
fn undecomposed(character: char) -> Option<&'static str> {
    Some(match character {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        'ς' => "σ",
        _ => return None,
    })
}
