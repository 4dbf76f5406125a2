//! Converts a scalar into the value type of its key.

use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;
use talon_sanitize::nearest;

use super::scalar;
use super::shape::{Shape, ShapeKind};
use crate::spec::{MANIFEST_FILE, SYSTEM_PATH};
use crate::units::{ByteSize, Duration, ParseDurationError, UidRange};

/// A scalar after variable expansion.
pub(super) struct ExpandedScalar {
    pub(super) text: String,
    /// Written without quotes.
    pub(super) plain: bool,
    /// Whether it contained a variable, so that it may be a secret.
    pub(super) substituted: bool,
}

/// A duration; a bare number is milliseconds where the key says so.
fn duration(text: &str, bare_milliseconds: bool) -> Result<Duration, ParseDurationError> {
    let is_bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if bare_milliseconds && is_bare { format!("{text}ms").parse() } else { text.parse() }
}

/// Reads the scalars of one source.
pub(super) struct ScalarReader<'a> {
    /// The base of relative paths; `None` leaves every path unchanged.
    pub(super) base: Option<PathBuf>,
    /// The expansion of `~/`.
    pub(super) home: Option<&'a Path>,
}

impl ScalarReader<'_> {
    /// Converts a scalar to a value of this shape. On failure returns the message and the help.
    pub(super) fn read(
        &self,
        filled: &ExpandedScalar,
        shape: &Shape,
    ) -> Result<Value, (String, Option<String>)> {
        let ExpandedScalar { text, plain, .. } = filled;
        let found = || filled.excerpt(&shape.kind);
        let expected = || format!("expected {}, found {}", shape.name(), found());
        let in_words = |error: String| {
            // The units' own messages repeat the text, which may be a secret from a variable.
            if filled.substituted { (expected(), None) } else { (error, None) }
        };
        match &shape.kind {
            ShapeKind::Text | ShapeKind::Secret => Ok(Value::String(text.clone())),
            ShapeKind::Path | ShapeKind::Program if text.is_empty() => {
                Err((expected(), Some("write a path".to_owned())))
            }
            ShapeKind::Path => Ok(Value::String(self.path(text))),
            ShapeKind::Program => Ok(Value::String(self.program(text))),
            ShapeKind::Duration => match text.parse::<Duration>() {
                Ok(duration) => Ok(Value::String(duration.to_string())),
                Err(error) => Err(in_words(error.to_string())),
            },
            ShapeKind::BoundedDuration { longest, bare_milliseconds } => {
                match duration(text, *bare_milliseconds) {
                    Ok(duration) if duration == Duration::ZERO || duration > *longest => {
                        let message =
                            format!("has to be more than nothing and at most {longest}, found {}", found());
                        Err((message, None))
                    }
                    Ok(duration) => Ok(Value::String(duration.to_string())),
                    Err(error) => Err(in_words(error.to_string())),
                }
            }
            ShapeKind::Dollars { decimals, most } => match check_decimal(text.trim(), *decimals, *most) {
                // A string, because a JSON number would lose digits.
                Ok(()) => Ok(Value::String(text.trim().to_owned())),
                Err(error) => Err((expected(), Some(error.to_string()))),
            },
            ShapeKind::Bytes => match text.parse::<ByteSize>() {
                Ok(size) => Ok(Value::String(size.to_string())),
                Err(error) => Err(in_words(error.to_string())),
            },
            ShapeKind::UidRange => match text.parse::<UidRange>() {
                Ok(range) => Ok(Value::String(range.to_string())),
                Err(error) => Err((error.to_string(), None)),
            },
            ShapeKind::SocketAddress => match text.parse::<SocketAddr>() {
                Ok(address) => Ok(Value::String(address.to_string())),
                // A name may stand for several addresses, and for others tomorrow.
                Err(_) => {
                    Err((expected(), Some("write 127.0.0.1:19789, or [::1]:19789; no name".to_owned())))
                }
            },
            ShapeKind::Bool => match scalar::resolve(text, *plain) {
                Some(Value::Bool(value)) => Ok(Value::Bool(value)),
                _ if !plain => Err((expected(), Some("write it without quotes".to_owned()))),
                _ => Err((expected(), None)),
            },
            ShapeKind::Integer { min, max } => {
                match scalar::resolve(text, *plain).as_ref().and_then(scalar::as_integer) {
                    Some(number) if (*min..=*max).contains(&number) => {
                        Ok(scalar::integer(number).unwrap_or(Value::Null))
                    }
                    Some(_) => Err((expected(), None)),
                    None if !plain && scalar::resolve(text, true).is_some_and(|value| value.is_i64()) => {
                        Err((expected(), Some("write it without quotes".to_owned())))
                    }
                    None => Err((expected(), None)),
                }
            }
            ShapeKind::Number { max } => match check_decimal(text.trim(), MAX_DECIMALS, *max) {
                Ok(()) => {
                    let number = text.trim().parse::<f64>().ok().and_then(serde_json::Number::from_f64);
                    Ok(number.map_or(Value::Null, Value::Number))
                }
                Err(error) => Err((expected(), Some(error.to_string()))),
            },
            ShapeKind::Choice(choices) => {
                if let Some(choice) = choices.iter().find(|choice| choice.word == *text) {
                    return match &choice.value {
                        Value::Bool(_) if !plain => {
                            Err((expected(), Some("write it without quotes".to_owned())))
                        }
                        value => Ok(value.clone()),
                    };
                }
                let near = nearest(text, choices.iter().map(|choice| choice.word.as_str()));
                Err((expected(), near.first().map(|word| format!("did you mean \"{word}\"?"))))
            }
            ShapeKind::Any => Ok(Value::String(text.clone())),
            ShapeKind::Object(_) | ShapeKind::OneOf(_) | ShapeKind::Map { .. } | ShapeKind::List(_) => {
                let help = match shape.kind {
                    ShapeKind::List(_) => format!("write [{}]", found()),
                    _ => "write its keys below it, further to the right".to_owned(),
                };
                Err((expected(), Some(help)))
            }
        }
    }

    /// An absolute path: `~/` is expanded, `.` components are removed.
    fn path(&self, text: &str) -> String {
        let Some(base) = &self.base else { return text.to_owned() };
        let path = match (text.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => base.join(text),
        };
        let tidy: PathBuf = path.components().filter(|part| !matches!(part, Component::CurDir)).collect();
        tidy.to_string_lossy().into_owned()
    }

    /// The absolute path of a program. A bare name that does not exist in the base directory is a system
    /// command.
    fn program(&self, text: &str) -> String {
        let here = self.path(text);
        let is_here = || Path::new(&here).is_file() || Path::new(&here).join(MANIFEST_FILE).is_file();
        if self.base.is_none() || text.contains('/') || is_here() {
            return here;
        }
        let system = SYSTEM_PATH.iter().map(|dir| Path::new(dir).join(text)).find(|path| path.is_file());
        system.map_or(here, |path| path.to_string_lossy().into_owned())
    }
}

/// The most decimals of a number: more than any that is in use, and few enough to be exact.
const MAX_DECIMALS: usize = 6;

/// Why a text is no decimal number: what to write instead.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum AmountError {
    #[error("write it like 2, 0.15 or 0.0375, without a sign or a unit")]
    NotAnAmount,
    #[error("write at most {0} decimals")]
    TooManyDecimals(usize),
    #[error("write at most {0}")]
    TooLarge(u64),
}

/// Checks a decimal number, such as an amount in dollars.
fn check_decimal(text: &str, decimals: usize, most: u64) -> Result<(), AmountError> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    if !digits(whole) || !digits(part) {
        return Err(AmountError::NotAnAmount);
    }
    let part = part.trim_end_matches('0');
    if part.len() > decimals {
        return Err(AmountError::TooManyDecimals(decimals));
    }
    let is_too_much = |whole: u64| whole > most || (whole == most && !part.is_empty());
    if whole.parse().map_or(true, is_too_much) {
        return Err(AmountError::TooLarge(most));
    }
    Ok(())
}

impl ExpandedScalar {
    /// The text for a message: truncated, and hidden if it may be a secret.
    fn excerpt(&self, kind: &ShapeKind) -> String {
        const SHOWN_CHARS: usize = 40;
        if self.substituted {
            return "what its variable holds".to_owned();
        }
        if matches!(kind, ShapeKind::Secret) {
            return "a text".to_owned();
        }
        let short: String = self.text.chars().take(SHOWN_CHARS).collect();
        let ellipsis = if short.len() < self.text.len() { "…" } else { "" };
        format!("{short:?}{ellipsis}")
    }
}
