//! Durations: `1m30s`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{MAX_TEXT_BYTES, excerpt, parse_number};

/// The longest duration, 365 days. A longer one means "for ever" or is a wrong unit, and sums of a few such
/// durations cannot overflow any clock.
pub const MAX_DURATION: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 60 * 60);

/// The schema format of a [`Duration`], by which the config's checks recognise it.
pub const DURATION_FORMAT: &str = "duration";

/// The duration units in nanoseconds, longest first.
const DURATION_UNITS: [(&str, u128); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// A duration that is written with its unit: `500ms`, `30s`, `1m30s`, `1.5h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(std::time::Duration);

/// Why a text is no valid duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseDurationError {
    /// It has no unit.
    #[error("{shown:?} has no unit: write \"{shown}s\" for seconds or \"{shown}ms\" for milliseconds")]
    NoUnit {
        /// The text.
        shown: String,
    },
    /// It has another form.
    #[error("{shown:?} is not a duration: write it like \"500ms\", \"30s\", \"1m30s\" or \"2h\"")]
    Malformed {
        /// The text, cut to a bounded length.
        shown: String,
    },
    /// It is longer than [`MAX_DURATION`].
    #[error("{shown:?} is too long: the longest duration is 365d")]
    TooLong {
        /// The text, cut to a bounded length.
        shown: String,
    },
}

impl Duration {
    /// Zero.
    pub const ZERO: Self = Self(std::time::Duration::ZERO);

    /// A number of milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(std::time::Duration::from_millis(millis))
    }

    /// A number of seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(std::time::Duration::from_secs(seconds))
    }

    /// As the standard library's type.
    #[must_use]
    pub const fn get(self) -> std::time::Duration {
        self.0
    }
}

impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        Self(duration)
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> Self {
        duration.0
    }
}

impl FromStr for Duration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        let malformed = || ParseDurationError::Malformed { shown: excerpt(text) };
        let too_long = || ParseDurationError::TooLong { shown: excerpt(text) };
        let mut rest = text.trim();
        if rest.is_empty() || rest.len() > MAX_TEXT_BYTES {
            return Err(malformed());
        }
        let mut nanos: u128 = 0;
        let mut longest_allowed = usize::MIN;
        while !rest.is_empty() {
            let (whole, fraction, scale, after) = parse_number(rest).ok_or_else(malformed)?;
            let after = after.trim_start();
            let letters = after.len() - after.trim_start_matches(|c: char| c.is_alphabetic()).len();
            let (unit, after) = after.split_at(letters);
            if unit.is_empty() && after.is_empty() && nanos == 0 {
                return Err(ParseDurationError::NoUnit { shown: excerpt(text.trim()) });
            }
            let unit = if unit == "µs" || unit == "μs" { "us" } else { unit };
            let index = DURATION_UNITS.iter().position(|(name, _)| *name == unit).ok_or_else(malformed)?;
            // Longest unit first, each once: "30s1m" and "1m1m" are mistakes, not sums.
            if index < longest_allowed {
                return Err(malformed());
            }
            longest_allowed = index + 1;
            let worth = DURATION_UNITS[index].1;
            let part = whole
                .checked_mul(worth)
                .and_then(|nanos| nanos.checked_add(fraction * worth / scale))
                .ok_or_else(too_long)?;
            nanos = nanos.checked_add(part).ok_or_else(too_long)?;
            rest = after.trim_start();
        }
        if nanos > MAX_DURATION.as_nanos() {
            return Err(too_long());
        }
        let nanos = u64::try_from(nanos).map_err(|_| too_long())?;
        Ok(Self(std::time::Duration::from_nanos(nanos)))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_nanos();
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, worth) in DURATION_UNITS {
            if rest >= worth {
                write!(f, "{}{unit}", rest / worth)?;
                rest %= worth;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Duration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration like \"30s\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Duration, E> {
                Err(E::custom(ParseDurationError::NoUnit { shown: number.to_string() }))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Duration, E> {
                Err(E::custom(ParseDurationError::NoUnit { shown: number.to_string() }))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": DURATION_FORMAT })
    }
}
