//! Durations as text: `1m 30s`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The longest: a day. No answer takes longer, and sums of several stay far below the limits of any clock.
const MAX_SPAN: Duration = Duration::from_secs(24 * 60 * 60);

/// A duration with its unit: `500ms`, `30s`, `1m30s`; more than zero and at most a day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(Duration);

impl TimeSpan {
    /// A duration in seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// A duration in milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// The duration as the standard library's type.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// Whole milliseconds, at most [`u64::MAX`].
#[must_use]
pub fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration writes a day as one letter.
        f.pad(&humantime::format_duration(self.0).to_string().replace("day", "d"))
    }
}

impl fmt::Debug for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_string().replace(' ', ""))
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bad = |_| {
            de::Error::custom(format!(
                "{text:?} is no duration: write it like \"500ms\", \"30s\" or \"1m30s\""
            ))
        };
        let span = humantime::parse_duration(text.trim()).map_err(bad)?;
        if span.is_zero() || span > MAX_SPAN {
            return Err(de::Error::custom(format!("{text:?} has to be more than none and at most 24h")));
        }
        Ok(Self(span))
    }
}

impl JsonSchema for TimeSpan {
    fn schema_name() -> Cow<'static, str> {
        "TimeSpan".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "duration", "x-longest-seconds": MAX_SPAN.as_secs() })
    }
}
