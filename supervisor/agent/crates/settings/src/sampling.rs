//! How a model chooses its words.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How a model chooses its words, and how long its answer may be. What is not said is left to the catalog and
/// the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// How freely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<SamplingNumber>,
    /// Of how much of all likelihood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<SamplingNumber>,
    /// The most tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

impl Sampling {
    /// The values here, or else those of `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            max_tokens: self.max_tokens.or(other.max_tokens),
        }
    }

    /// The temperature, as requests have it.
    #[must_use]
    pub fn temperature(self) -> Option<f32> {
        self.temperature.map(SamplingNumber::short)
    }

    /// The part of all likelihood, as requests have it.
    #[must_use]
    pub fn top_p(self) -> Option<f32> {
        self.top_p.map(SamplingNumber::short)
    }
}

/// A number from 0 to 2 with at most three decimals, such as a temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SamplingNumber(u16);

/// The largest temperature that any provider takes.
const MAX_THOUSANDTHS: f64 = 2000.0;

impl SamplingNumber {
    /// From a number; `None` if it is not from 0 to 2. Further decimals are rounded.
    #[must_use]
    pub fn new(number: f64) -> Option<Self> {
        let thousandths = (number * 1000.0).round();
        // In this range the conversion is exact.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked beside it"
        )]
        (0.0..=MAX_THOUSANDTHS).contains(&thousandths).then_some(Self(thousandths as u16))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// The number, as requests have it.
    #[must_use]
    pub fn short(self) -> f32 {
        f32::from(self.0) / 1000.0
    }

    /// Whether it is a part of 1, and not none.
    #[must_use]
    pub fn is_part(self) -> bool {
        (1..=1000).contains(&self.0)
    }
}

impl std::fmt::Display for SamplingNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.get())
    }
}

impl Serialize for SamplingNumber {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.get())
    }
}

impl<'de> Deserialize<'de> for SamplingNumber {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(from)?;
        Self::new(number)
            .ok_or_else(|| serde::de::Error::custom(format!("{number} is not a number from 0 to 2")))
    }
}

impl JsonSchema for SamplingNumber {
    fn schema_name() -> Cow<'static, str> {
        "SamplingNumber".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 2 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_from_0_to_2_are_taken_as_they_are_written() {
        for text in ["0", "0.2", "0.7", "0.95", "1", "1.333", "2"] {
            let number: SamplingNumber = serde_saphyr::from_str(text).expect(text);
            assert_eq!(number.to_string(), text);
        }
        for bad in ["-0.1", "2.1", "NaN", ".inf", "warm"] {
            assert!(serde_saphyr::from_str::<SamplingNumber>(bad).is_err(), "{bad}");
        }
    }
}
