//! Durations of a schedule as text: `1h30m`, `7d`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use talon_sanitize::truncate;

/// The longest: a leap year.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// The shortest: a second, since planned times are whole seconds.
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest text of a duration in a message.
const MAX_SHOWN_BYTES: usize = 40;

/// A duration of whole seconds with its units, from `1s` to `366d`: `90s`, `1h30m`, `7d`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval(Duration);

/// Why a text is not an interval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{shown:?} is no interval: write whole seconds, minutes, hours or days from 1s to 366d, such as 90s, 1h30m or 7d"
)]
pub struct ParseIntervalError {
    /// The text, truncated.
    pub shown: String,
}

impl Interval {
    /// An interval of so many seconds; less than one counts as one.
    #[must_use]
    pub const fn from_secs(seconds: u32) -> Self {
        Self(Duration::from_secs(if seconds == 0 { 1 } else { seconds as u64 }))
    }

    /// The interval as the standard library's type.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }

    /// The interval in milliseconds, at least 1000.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        i64::try_from(self.0.as_millis()).expect("a year in milliseconds fits")
    }
}

impl FromStr for Interval {
    type Err = ParseIntervalError;

    fn from_str(text: &str) -> Result<Self, ParseIntervalError> {
        let parsed = humantime::parse_duration(text.trim()).ok();
        let fits = |length: &Duration| (SHORTEST..=LONGEST).contains(length) && length.subsec_nanos() == 0;
        parsed
            .filter(fits)
            .map(Self)
            .ok_or_else(|| ParseIntervalError { shown: truncate(text, MAX_SHOWN_BYTES, "…").into_owned() })
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut seconds = self.0.as_secs();
        let mut text = String::new();
        for (unit, length) in [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)] {
            let count = seconds / length;
            seconds %= length;
            if count > 0 {
                text.push_str(&format!("{count}{unit}"));
            }
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Interval {
    fn schema_name() -> Cow<'static, str> {
        "Interval".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "duration", "x-longest-seconds": LONGEST.as_secs() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_shown_is_read_as_the_same(seconds in 1_u32..=366 * 86_400) {
            let interval = Interval::from_secs(seconds);
            prop_assert_eq!(interval.to_string().parse(), Ok(interval));
        }
    }

    #[test]
    fn what_is_no_interval_is_refused_with_what_to_write() {
        for text in ["", "0s", "500ms", "1.5s", "367d", "-1s", "5", "every day", "99999999999999999999y"] {
            let error = text.parse::<Interval>().expect_err(text).to_string();
            assert!(error.ends_with("7d"), "{error}");
        }
    }
}
