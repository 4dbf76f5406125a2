//! Hours in which an entry sends nothing.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Hours in which events wait, for all but the kinds in `except`. At their end they are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietHours {
    /// When they begin, as `22:00`.
    pub from: TimeOfDay,
    /// When they end, as `07:00`; before `from`, if they go across midnight.
    pub to: TimeOfDay,
    /// The time zone, by its IANA name. Default: `UTC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"Europe/Berlin")]
    pub timezone: Option<String>,
    /// Kinds of events that are sent all the same; `plugin.*` stands for all that begin so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

impl QuietHours {
    /// Whether a time of day is within them. The beginning is, the end is not.
    #[must_use]
    pub fn contains(&self, time: TimeOfDay) -> bool {
        if self.from <= self.to {
            (self.from..self.to).contains(&time)
        } else {
            time >= self.from || time < self.to
        }
    }
}

/// A time of day, to the minute: `07:30`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay {
    minutes: u16,
}

/// Why a text is no time of day.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{shown:?} is no time of day: write hour and minute from 00:00 to 23:59, such as 07:30")]
pub struct ParseTimeOfDayError {
    shown: String,
}

impl TimeOfDay {
    /// A time of day; `None` from 24:00 on.
    #[must_use]
    pub const fn new(hour: u8, minute: u8) -> Option<Self> {
        if hour < 24 && minute < 60 { Some(Self { minutes: hour as u16 * 60 + minute as u16 }) } else { None }
    }

    /// The hour, from 0 to 23.
    #[must_use]
    pub const fn hour(self) -> u8 {
        (self.minutes / 60) as u8
    }

    /// The minute, from 0 to 59.
    #[must_use]
    pub const fn minute(self) -> u8 {
        (self.minutes % 60) as u8
    }
}

impl FromStr for TimeOfDay {
    type Err = ParseTimeOfDayError;

    fn from_str(text: &str) -> Result<Self, ParseTimeOfDayError> {
        const MOST_SHOWN: usize = 20;
        let number = |digits: &str| {
            let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| is_number)
        };
        let parsed =
            text.split_once(':').and_then(|(hour, minute)| Self::new(number(hour)?, number(minute)?));
        parsed.ok_or_else(|| ParseTimeOfDayError { shown: text.chars().take(MOST_SHOWN).collect() })
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour(), self.minute())
    }
}

impl fmt::Debug for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for TimeOfDay {
    fn schema_name() -> Cow<'static, str> {
        "TimeOfDay".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> TimeOfDay {
        text.parse().expect("a time")
    }

    #[test]
    fn times_of_day_are_read_and_written() {
        for text in ["00:00", "07:30", "23:59"] {
            assert_eq!(time(text).to_string(), text);
        }
        for wrong in ["", "7:30", "24:00", "12:60", "1:2", "+1:00", "12:00:00", "noon", &"9".repeat(10_000)] {
            let error = wrong.parse::<TimeOfDay>().expect_err(wrong).to_string();
            assert!(error.len() < 200, "{error}");
        }
    }

    #[test]
    fn hours_may_go_across_midnight() {
        let hours = |from, to| QuietHours { from: time(from), to: time(to), timezone: None, except: vec![] };
        let night = hours("22:00", "07:00");
        for (at, quiet) in
            [("22:00", true), ("23:59", true), ("00:00", true), ("06:59", true), ("07:00", false)]
        {
            assert_eq!(night.contains(time(at)), quiet, "{at}");
        }
        let noon = hours("12:00", "13:00");
        assert!(
            noon.contains(time("12:30")) && !noon.contains(time("13:00")) && !noon.contains(time("00:00"))
        );
    }
}
