//! How long something is stored, as text: `90d`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The shortest: an hour, as often as it is looked.
const MIN: Duration = Duration::from_secs(60 * 60);
/// The longest: a hundred years of 365 days, which is for good.
const MAX: Duration = Duration::from_secs(36_500 * 24 * 60 * 60);

/// A duration with its unit: `12h`, `90d`, `1y`; from an hour to 100 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RetentionPeriod(Duration);

impl RetentionPeriod {
    /// The duration as the standard library's type.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

/// In days and hours, as it can be read again.
impl fmt::Display for RetentionPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HOUR: u64 = 60 * 60;
        let seconds = self.0.as_secs();
        let (days, hours, rest) = (seconds / (24 * HOUR), seconds / HOUR % 24, seconds % HOUR);
        let parts = [(days, "d"), (hours, "h"), (rest, "s")];
        parts.iter().filter(|(count, _)| *count > 0).try_for_each(|(count, unit)| write!(f, "{count}{unit}"))
    }
}

impl Serialize for RetentionPeriod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RetentionPeriod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bad = |_| de::Error::custom(format!("{text:?} is no duration: write it like \"12h\" or \"90d\""));
        let period = humantime::parse_duration(text.trim()).map_err(bad)?;
        // Fractions of a second would be lost when it is written.
        if !(MIN..=MAX).contains(&period) || period.subsec_nanos() > 0 {
            return Err(de::Error::custom(format!("{text:?} has to be from 1h to 36500d")));
        }
        Ok(Self(period))
    }
}

impl JsonSchema for RetentionPeriod {
    fn schema_name() -> Cow<'static, str> {
        "RetentionPeriod".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "duration", "x-longest-seconds": MAX.as_secs() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<RetentionPeriod, String> {
        serde_json::from_value(text.into()).map_err(|error: serde_json::Error| error.to_string())
    }

    // Promises: GW-226
    #[test]
    fn a_period_has_a_unit_and_bounds() {
        assert_eq!(read("90d").map(RetentionPeriod::get), Ok(Duration::from_secs(90 * 24 * 60 * 60)));
        for wrong in ["30", "0s", "59m", "36501d", "soon"] {
            assert!(read(wrong).expect_err(wrong).contains(wrong), "{wrong}");
        }
    }

    proptest! {
        // Promises: GW-226
        #[test]
        fn what_is_written_is_read_again(seconds in MIN.as_secs()..=MAX.as_secs()) {
            let period = RetentionPeriod(Duration::from_secs(seconds));
            prop_assert_eq!(read(&period.to_string()), Ok(period));
        }
    }
}
