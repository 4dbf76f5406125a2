//! Points in time, in milliseconds, which both engines store exactly.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A point in time in milliseconds since 1970. Its text form is RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

/// The end of the year 9999, after which RFC 3339 has no representation.
const LATEST: i64 = 253_402_300_799_999;

impl Timestamp {
    /// The current time.
    #[must_use]
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self::from_millis(i64::try_from(since.as_millis()).unwrap_or(LATEST))
    }

    /// From milliseconds since 1970; values outside 1970 to 9999 are clamped.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(0, LATEST))
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The time `age` earlier, but not before 1970.
    #[must_use]
    pub fn before(self, age: Duration) -> Self {
        Self::from_millis(self.0.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = Duration::from_millis(self.0.unsigned_abs());
        humantime::format_rfc3339_millis(SystemTime::UNIX_EPOCH + since).fmt(f)
    }
}

impl TryFrom<String> for Timestamp {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        let time = humantime::parse_rfc3339(&text)
            .map_err(|error| Error::invalid("a timestamp", format!("must be RFC 3339 in UTC: {error}")))?;
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(Self::from_millis(i64::try_from(since.as_millis()).unwrap_or(LATEST)))
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> Self {
        time.to_string()
    }
}
