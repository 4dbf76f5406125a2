//! What the user's environment says about the terminal, beyond colours.

use std::ffi::OsString;

/// The variable for readers of the screen.
const SCREEN_READER_VARIABLE: &str = "TALON_SCREEN_READER";

/// Whether what a screen reader cannot speak is left out: animations, and symbols in place of words.
pub(crate) fn has_screen_reader() -> bool {
    is_set(std::env::var_os(SCREEN_READER_VARIABLE))
}

/// Whether symbols beyond ASCII are replaced by words: for screen readers, and in a locale without UTF-8.
pub(crate) fn uses_words() -> bool {
    has_screen_reader() || !is_utf8(|name| std::env::var_os(name))
}

/// Whether the terminal gets nothing but text: no animations and no links.
pub(crate) fn is_plain() -> bool {
    has_screen_reader() || std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn is_set(value: Option<OsString>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

/// The first of the variables that is set counts, as in the C library. Where none is, as in many containers, the
/// terminal mostly takes UTF-8.
fn is_utf8(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).find(|value| !value.is_empty());
    locale.is_none_or(|locale| {
        let locale = locale.to_string_lossy().to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_says_the_locale() {
        let utf8 = |set: &[(&str, &str)]| {
            is_utf8(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
        };
        assert!(utf8(&[]));
        assert!(utf8(&[("LANG", "de_DE.UTF-8")]));
        assert!(utf8(&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!utf8(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(!utf8(&[("LANG", "de_DE.ISO-8859-1")]));
        assert!(is_set(Some("1".into())) && !is_set(Some("0".into())) && !is_set(None));
    }
}
