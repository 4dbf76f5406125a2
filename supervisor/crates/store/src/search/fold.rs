//! Folds text, so that accents, case and width do not matter.

use unicode_normalization::UnicodeNormalization as _;

/// A text in the form for comparison. Only the accents of European scripts are removed: in Japanese a voicing
/// mark, or in Thai a vowel sign, makes another letter.
pub(crate) fn fold(text: &str) -> String {
    let bare = text.nfkd().filter(|c| !('\u{300}'..='\u{36f}').contains(c));
    let mut folded = String::with_capacity(text.len());
    for character in bare.nfc().flat_map(char::to_lowercase) {
        match undecomposed(character) {
            Some(plain) => folded.push_str(plain),
            // The dot of İ, which lowercasing separates.
            None if character == '\u{307}' => {}
            None => folded.push(character),
        }
    }
    folded
}

/// Letters that people type without their accent, but which Unicode does not decompose.
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
