//! Durations as text: `1m 30s`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The longest, a day: no answer is waited for longer, and sums of some stay far from the end of any clock.
const MAX_SPAN: Duration = Duration::from_secs(24 * 60 * 60);

/// A length of time that is written with its unit: `500ms`, `30s`, `1m30s`; more than none and at most a day.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(Duration);

impl TimeSpan {
    /// So many seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// So many milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// As the standard library's type.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The configuration knows a day by one letter.
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
