//! Errors in the arguments of a call, as the caller reads them.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use crate::text::shorten;

/// How much of a wrong value an error repeats, in bytes: enough to recognise it.
const MAX_SHOWN_BYTES: usize = 64;
/// How much of a type's own error text is kept, in bytes; some repeat the whole input.
const MAX_DETAIL_BYTES: usize = 512;

/// The first error found in the arguments.
#[derive(Debug)]
pub(crate) struct ArgsError(String);

impl ArgsError {
    /// A complete error text that needs no argument name in front.
    pub(crate) fn from_message(text: String) -> Self {
        Self(text)
    }

    /// `argument "count": expected …, got "…"`.
    pub(crate) fn mismatch(name: &str, text: &str, expected: &dyn fmt::Display) -> Self {
        let expected = shorten(&expected.to_string(), MAX_DETAIL_BYTES);
        Self(format!("argument `{name}`: expected {expected}, got {:?}", shorten(text, MAX_SHOWN_BYTES)))
    }

    /// `argument "place": missing field …, got "…"`: JSON of the right kind whose content does not fit.
    pub(crate) fn invalid(name: &str, text: &str, complaint: &dyn fmt::Display) -> Self {
        let complaint = shorten(&complaint.to_string(), MAX_DETAIL_BYTES);
        Self(format!("argument `{name}`: {complaint}, got {:?}", shorten(text, MAX_SHOWN_BYTES)))
    }

    /// Prefixes an error of the field's type with the argument's name.
    pub(crate) fn in_argument(self, name: &str) -> Self {
        if self.0.starts_with("argument `") { self } else { Self(format!("argument `{name}`: {}", self.0)) }
    }
}

impl fmt::Display for ArgsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArgsError {}

impl Error for ArgsError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(shorten(&message.to_string(), MAX_DETAIL_BYTES))
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}, got {unexpected}"))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}, got {unexpected}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let shown = shorten(variant, MAX_SHOWN_BYTES);
        Self::custom(format_args!("expected one of {}, got {shown:?}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(format!("argument `{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self(format!("argument `{field}` is given twice"))
    }
}
