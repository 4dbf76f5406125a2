//! What a server said, in a line that can be shown.

/// The longest line, in characters: an error with its place and a sentence of the server's.
pub const MAX_LINE_CHARS: usize = 300;

/// A text in one line of at most 300 characters: runs of white space and control characters become a space.
#[must_use]
pub fn one_line(text: &str) -> String {
    bounded_line(text, MAX_LINE_CHARS)
}

/// A text in one line of at most this many characters, with `…` at the end of one that is cut.
#[must_use]
pub fn bounded_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        let space = usize::from(chars > 0);
        for c in (if space == 1 { " " } else { "" }).chars().chain(word.chars()) {
            if chars == max_chars {
                // The mark takes the place of the last one.
                line.pop();
                line.push('…');
                return line;
            }
            line.push(c);
            chars += 1;
        }
    }
    line
}

/// A text without these secrets, for a server that repeats what it was sent. One of fewer than 6 characters is left: it
/// would stand in other words, too.
#[must_use]
pub fn without_secrets(text: &str, secrets: &[&str]) -> String {
    const MIN_SECRET_BYTES: usize = 6;
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= MIN_SECRET_BYTES) {
        text = text.replace(secret, "[hidden]");
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_becomes_one_line() {
        assert_eq!(one_line("  550 no\r\nsuch\u{1b}[31m user\u{0} "), "550 no such [31m user");
        assert_eq!(bounded_line("abcdef", 4), "abc…");
        assert_eq!(bounded_line("abcd", 4), "abcd");
    }

    #[test]
    fn secrets_are_taken_out() {
        let said = "no hook /services/T0/xyz; token abc";
        assert_eq!(without_secrets(said, &["/services/T0/xyz", "abc"]), "no hook [hidden]; token abc");
    }

    proptest! {
        #[test]
        fn a_line_is_one_and_bounded(text in any::<String>(), max in 1_usize..50) {
            let line = bounded_line(&text, max);
            prop_assert!(line.chars().count() <= max);
            prop_assert!(!line.chars().any(char::is_control));
        }
    }
}
