//! Paths in commands that people paste into a shell.

use std::path::Path;

/// Quotes a path for a shell.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with('-') {
        return text;
    }
    // A leading '-' would be read as an option.
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        for (path, word) in [
            ("/tmp/a-b_c.d", "/tmp/a-b_c.d"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("-rf", "'./-rf'"),
            ("$(x)", "'$(x)'"),
        ] {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }
}
