//! One argument: its name, its text, and the readings of its text.

use std::fmt::Display;
use std::str::FromStr;

use super::ArgsError;
use crate::schema::Kind;

/// Up to this value a float represents every integer exactly, so `3.0` can safely be read as 3.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

/// One argument of a call.
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) kind: Kind,
    /// It is the `null` of JSON, and not the word.
    pub(super) is_null: bool,
}

impl Argument {
    pub(super) fn of_text(kind: Kind, name: String, text: String) -> Self {
        Self { name, text, kind, is_null: false }
    }

    /// A string of JSON is read as a text is, but where the field takes several kinds it is certainly a
    /// string; anything else is its own text.
    pub(super) fn of_json(name: &str, json: &str, kind: Kind) -> Self {
        let string = json.starts_with('"').then(|| serde_json::from_str::<String>(json).ok()).flatten();
        let kind = if string.is_some() && kind == Kind::Mixed { Kind::String } else { kind };
        let text = string.unwrap_or_else(|| json.to_owned());
        Self { name: name.to_owned(), is_null: json == "null", text, kind }
    }

    pub(super) fn mismatch(&self, expected: &dyn Display) -> ArgsError {
        ArgsError::mismatch(&self.name, &self.text, expected)
    }

    /// Runs a visitor and prefixes its error with the argument's name.
    pub(super) fn visit<T>(&self, visit: impl FnOnce(&str) -> Result<T, ArgsError>) -> Result<T, ArgsError> {
        visit(&self.text).map_err(|error| error.in_argument(&self.name))
    }

    /// An integer within the bounds of `N`; `3.0` is one too, because models write that.
    pub(super) fn integer<N: FromStr + Display + TryFrom<i128>>(
        &self,
        min: N,
        max: N,
    ) -> Result<N, ArgsError> {
        let text = self.text.trim();
        if let Ok(number) = text.parse::<N>() {
            return Ok(number);
        }
        if let Ok(float) = text.parse::<f64>()
            && float.fract() == 0.0
            && float.abs() <= MAX_EXACT_FLOAT
        {
            #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within 2^53")]
            let whole = float as i128;
            if let Ok(number) = N::try_from(whole) {
                return Ok(number);
            }
        }
        Err(self.mismatch(&format_args!("an integer from {min} to {max}")))
    }

    pub(super) fn number(&self) -> Result<f64, ArgsError> {
        match self.text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(self.mismatch(&"a number")),
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, ArgsError> {
        match self.text.trim() {
            text if text.eq_ignore_ascii_case("true") => Ok(true),
            text if text.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(self.mismatch(&"true or false")),
        }
    }

    /// Parses the text as JSON, for types that only JSON can express. It parses from a reader, because the
    /// result must not borrow from an argument that ends with this call.
    pub(super) fn json<T>(
        &self,
        expected: &str,
        read: impl FnOnce(&mut JsonReader<'_>) -> serde_json::Result<T>,
    ) -> Result<T, ArgsError> {
        let mut json = serde_json::Deserializer::from_reader(self.text.as_bytes());
        read(&mut json).and_then(|value| json.end().map(|()| value)).map_err(|error| {
            // "expected an object" does not help a caller who did send an object.
            let right_kind = match self.kind {
                Kind::Array => self.text.trim_start().starts_with('['),
                _ => self.text.trim_start().starts_with('{'),
            };
            if right_kind && error.is_data() {
                ArgsError::invalid(&self.name, &self.text, &error)
            } else {
                self.mismatch(&format_args!("{expected} ({error})"))
            }
        })
    }
}

pub(super) type JsonReader<'t> = serde_json::Deserializer<serde_json::de::IoRead<&'t [u8]>>;
