//! The language of a text, among those that the safety rules have.

use super::LANGUAGES;

/// Frequent words that the others of these languages do not have.
const WORDS: [(&str, &[&str]); 4] = [
    ("en", &["the", "and", "is", "what", "this", "with", "please", "how"]),
    ("de", &["der", "die", "und", "ist", "das", "nicht", "bitte", "wie", "mit", "ein"]),
    ("fr", &["le", "les", "et", "est", "dans", "pour", "une", "quel", "des"]),
    ("es", &["el", "los", "y", "es", "para", "una", "qué", "por", "como"]),
];

/// The language, by its ISO 639-1 code; `None` if it is none of these, or cannot be seen. A guess: it only
/// selects in which languages rules are repeated.
#[must_use]
pub fn language_of(text: &str) -> Option<&'static str> {
    let (mut kana, mut han, mut cyrillic, mut arabic, mut letters) = (0, 0, 0, 0, 0);
    for c in text.chars().filter(|c| c.is_alphabetic()) {
        letters += 1;
        match c {
            '\u{3040}'..='\u{30ff}' => kana += 1,
            '\u{4e00}'..='\u{9fff}' => han += 1,
            '\u{400}'..='\u{4ff}' => cyrillic += 1,
            '\u{600}'..='\u{6ff}' => arabic += 1,
            _ => {}
        }
    }
    let script = [("ja", kana), ("zh", han), ("ru", cyrillic), ("ar", arabic)];
    // One kana among Chinese characters makes it Japanese.
    let found =
        script.into_iter().find(|(code, count)| *count * if *code == "ja" { 10 } else { 2 } > letters);
    if found.is_some() {
        return known(found.map(|(code, _)| code));
    }
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let counts = WORDS
        .iter()
        .map(|(code, known)| (words.iter().filter(|word| known.contains(&word.as_str())).count(), *code));
    known(counts.filter(|(count, _)| *count > 0).max_by_key(|(count, _)| *count).map(|(_, code)| code))
}

fn known(code: Option<&str>) -> Option<&'static str> {
    LANGUAGES.iter().map(|(known, _)| *known).find(|known| Some(*known) == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eight_languages_are_told_apart() {
        for (code, text) in [
            ("en", "What is in the file?"),
            ("de", "Was steht in der Datei, und ist sie aktuell?"),
            ("fr", "Quel est le contenu des fichiers ?"),
            ("es", "¿Qué hay en los archivos y por qué?"),
            ("zh", "文件里有什么？"),
            ("ja", "ファイルの内容を見せてください"),
            ("ru", "Что в этом файле?"),
            ("ar", "ماذا يوجد في الملف؟"),
        ] {
            assert_eq!(language_of(text), Some(code), "{text}");
        }
        for text in ["", "ls -la", "42", "Mitä tiedostossa on?"] {
            assert_eq!(language_of(text), None, "{text}");
        }
    }
}
