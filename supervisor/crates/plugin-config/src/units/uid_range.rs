//! Ranges of uids: `70000-79999`.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The schema format of a [`UidRange`].
pub const UID_RANGE_FORMAT: &str = "uid-range";

/// An inclusive range of uids, written `70000-79999`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UidRange {
    first: u32,
    last: u32,
}

/// Why a text is no range of uids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a range of uids: write it as FIRST-LAST, like \"70000-79999\", with FIRST at least 1 and not above LAST"
)]
pub struct ParseUidRangeError;

impl UidRange {
    /// From the first to the last.
    #[must_use]
    pub fn range(self) -> RangeInclusive<u32> {
        self.first..=self.last
    }
}

impl Default for UidRange {
    fn default() -> Self {
        Self { first: 70_000, last: 79_999 }
    }
}

impl FromStr for UidRange {
    type Err = ParseUidRangeError;

    fn from_str(text: &str) -> Result<Self, ParseUidRangeError> {
        let (first, last) = text.split_once('-').ok_or(ParseUidRangeError)?;
        let first: u32 = first.trim().parse().map_err(|_| ParseUidRangeError)?;
        let last: u32 = last.trim().parse().map_err(|_| ParseUidRangeError)?;
        // The last number of the type means "no uid" to the kernel.
        if first == 0 || first > last || last == u32::MAX {
            return Err(ParseUidRangeError);
        }
        Ok(Self { first, last })
    }
}

impl fmt::Display for UidRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl Serialize for UidRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UidRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for UidRange {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "UidRange".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": UID_RANGE_FORMAT })
    }
}
