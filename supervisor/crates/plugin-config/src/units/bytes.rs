//! Sizes: `64KiB`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{MAX_TEXT_BYTES, excerpt, parse_number};

/// The schema format of a [`ByteSize`].
pub const BYTES_FORMAT: &str = "bytes";

/// The size units in bytes. The first five are used for printing.
const SIZE_UNITS: [(&str, u128); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
];

/// A number of bytes: `65536`, `64KiB`, `8 MiB`, `10MB`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(u64);

/// Why a text is no valid size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseSizeError {
    /// It has another form.
    #[error(
        "{shown:?} is not a size: write bytes as a number, or a number with B, KiB, MiB, GiB, kB, MB or GB"
    )]
    Malformed {
        /// The text, cut to a bounded length.
        shown: String,
    },
    /// It is not a whole number of bytes.
    #[error("{shown:?} is not a whole number of bytes: write a size without a fraction, in a smaller unit")]
    Fraction {
        /// The text, cut to a bounded length.
        shown: String,
    },
    /// It exceeds the largest number of bytes.
    #[error("{shown:?} is too large: the largest size is {} bytes", u64::MAX)]
    TooLarge {
        /// The text, cut to a bounded length.
        shown: String,
    },
}

impl ByteSize {
    /// A number of bytes.
    #[must_use]
    pub const fn bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// A number of KiB (1,024 bytes).
    #[must_use]
    pub const fn kib(kib: u64) -> Self {
        Self(kib << 10)
    }

    /// A number of MiB (1,048,576 bytes).
    #[must_use]
    pub const fn mib(mib: u64) -> Self {
        Self(mib << 20)
    }

    /// In bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// In bytes, as `usize`. A larger size becomes `usize::MAX`, which means the same as a limit.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for ByteSize {
    type Err = ParseSizeError;

    fn from_str(text: &str) -> Result<Self, ParseSizeError> {
        let malformed = || ParseSizeError::Malformed { shown: excerpt(text) };
        let too_large = || ParseSizeError::TooLarge { shown: excerpt(text) };
        let trimmed = text.trim();
        if trimmed.len() > MAX_TEXT_BYTES {
            return Err(malformed());
        }
        let (whole, fraction, scale, unit) = parse_number(trimmed).ok_or_else(malformed)?;
        let unit = unit.trim_start();
        let unit = if unit.is_empty() { "B" } else { unit };
        let worth = SIZE_UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, worth)| *worth)
            .ok_or_else(malformed)?;
        if (fraction * worth) % scale != 0 {
            return Err(ParseSizeError::Fraction { shown: excerpt(text) });
        }
        let bytes = whole
            .checked_mul(worth)
            .and_then(|bytes| bytes.checked_add(fraction * worth / scale))
            .ok_or_else(too_large)?;
        u64::try_from(bytes).map(Self).map_err(|_| too_large())
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = u128::from(self.0);
        let printed = &SIZE_UNITS[..5];
        let (unit, worth) = printed
            .iter()
            .find(|(_, worth)| bytes >= *worth && bytes % worth == 0)
            .copied()
            .unwrap_or(("B", 1));
        write!(f, "{}{unit}", bytes / worth)
    }
}

impl fmt::Debug for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size like 65536 or \"64KiB\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<ByteSize, E> {
                Ok(ByteSize(bytes))
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<ByteSize, E> {
                u64::try_from(bytes)
                    .map(ByteSize)
                    .map_err(|_| E::custom(ParseSizeError::Malformed { shown: bytes.to_string() }))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for ByteSize {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "format": BYTES_FORMAT, "minimum": 0 })
    }
}
