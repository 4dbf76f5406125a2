//! Reads one text as the JSON that it stands for.

use serde_json::Value;

use crate::{Kinds, ParameterKinds};

/// Up to this value a float represents every integer exactly.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// What a text stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<'t> {
    /// The string itself.
    String(&'t str),
    /// This JSON.
    Json(String),
    /// The argument counts as left out.
    LeftOut,
}

/// Reads a text for a parameter. `None`: the parameter does not take it.
///
/// - A parameter that takes strings alone, or a string or `null`, gets the text as it is.
/// - One that takes strings and more gets the JSON that the text is, if it is JSON that the parameter takes,
///   and otherwise the text: `7` is a number, `"7"` and `seven` are strings.
/// - All others get JSON. Truth values may be capitalized, and whole numbers written as `3.0`, as models do.
///   `null` counts as left out where it is not taken and the parameter is optional.
#[must_use]
pub fn read_text(text: &str, parameter: ParameterKinds) -> Option<Reading<'_>> {
    let kinds = parameter.kinds;
    let takes_strings = kinds.admits(Kinds::STRING);
    if takes_strings && kinds.without(Kinds::STRING | Kinds::NULL) == Kinds::NONE {
        return Some(Reading::String(text));
    }
    let trimmed = text.trim();
    let json = json(trimmed, kinds);
    match json {
        Some(json) => Some(Reading::Json(json)),
        None if takes_strings => Some(Reading::String(text)),
        None if trimmed == "null" && parameter.is_optional => Some(Reading::LeftOut),
        None => None,
    }
}

/// The text as JSON of one of these kinds.
fn json(text: &str, kinds: Kinds) -> Option<String> {
    if kinds.admits(Kinds::BOOLEAN) && !kinds.admits(Kinds::STRING) {
        for word in ["true", "false"] {
            if text.eq_ignore_ascii_case(word) {
                return Some(word.to_owned());
            }
        }
    }
    let value: Value = serde_json::from_str(text).ok()?;
    if !kinds.admits(Kinds::of_value(&value)) {
        return None;
    }
    // A whole number with a fraction of zero is written as an integer, where only integers are taken.
    match value.as_f64() {
        Some(float)
            if value.is_f64()
                && !kinds.admits(Kinds::NUMBER)
                && float.abs() <= MAX_EXACT_FLOAT
                && text.contains(['.', 'e', 'E']) =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within 2^53")]
            let whole = float as i64;
            Some(whole.to_string())
        }
        _ => Some(crate::json::compact(text)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str, kinds: Kinds, is_optional: bool) -> Option<Reading<'_>> {
        read_text(text, ParameterKinds { kinds, is_optional })
    }

    #[test]
    fn a_text_is_what_its_parameter_takes() {
        let json = |text: &str| Some(Reading::Json(text.to_owned()));
        let nullable = |kinds: Kinds| kinds | Kinds::NULL;
        for (text, kinds, expected) in [
            ("7", Kinds::STRING, Some(Reading::String("7"))),
            ("null", nullable(Kinds::STRING), Some(Reading::String("null"))),
            (" 7 ", Kinds::INTEGER, json("7")),
            ("3.0", Kinds::INTEGER, json("3")),
            ("3.0", Kinds::NUMBER, json("3.0")),
            ("1.5", Kinds::INTEGER, None),
            ("12345678901234567890123", Kinds::INTEGER, json("12345678901234567890123")),
            ("NaN", Kinds::NUMBER, None),
            ("True", Kinds::BOOLEAN, json("true")),
            ("yes", Kinds::BOOLEAN, None),
            ("[1, [2]]", Kinds::ARRAY, json("[1,[2]]")),
            ("{}", Kinds::ARRAY, None),
            ("null", nullable(Kinds::INTEGER), json("null")),
            ("null", Kinds::INTEGER, Some(Reading::LeftOut)),
            ("7", Kinds::ANY, json("7")),
            ("\"7\"", Kinds::ANY, json("\"7\"")),
            ("seven", Kinds::ANY, Some(Reading::String("seven"))),
            ("True", Kinds::ANY, Some(Reading::String("True"))),
            ("7", Kinds::STRING | Kinds::BOOLEAN, Some(Reading::String("7"))),
            ("null", Kinds::ANY, json("null")),
        ] {
            assert_eq!(read(text, kinds, true), expected, "{text:?} {kinds:?}");
        }
        assert_eq!(read("null", Kinds::INTEGER, false), None);
    }

    proptest! {
        #[test]
        fn integers_come_out_as_they_went_in(number in any::<i128>()) {
            let text = number.to_string();
            prop_assert_eq!(read(&text, Kinds::INTEGER, false), Some(Reading::Json(text.clone())));
        }

        #[test]
        fn no_text_is_a_panic(text in ".{0,40}") {
            for kinds in [Kinds::STRING, Kinds::INTEGER, Kinds::NUMBER, Kinds::BOOLEAN, Kinds::ARRAY, Kinds::OBJECT, Kinds::ANY, Kinds::NONE] {
                let _ = read(&text, kinds, true);
            }
        }
    }
}
