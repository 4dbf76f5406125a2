//! Money and prices, exact.
//!
//! The unit is the picodollar, a millionth of a millionth of a dollar. A price in dollars per million tokens
//! with at most six decimals is then a whole number per token, so that nothing is ever divided, rounded or
//! lost in a sum. Decimal numbers exist only at the edges, and are parsed by their digits.

use std::borrow::Cow;
use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use talon_sanitize::prefix;

/// Picodollars in a dollar.
pub const PICOS_PER_DOLLAR: u128 = 1_000_000_000_000;

/// Picodollars in a millionth of a dollar.
pub const PICOS_PER_MICRO: u128 = 1_000_000;

/// The decimals of a dollar in picodollars.
const MONEY_DECIMALS: usize = 12;

/// The decimals of a price: with six, the price of a token is a whole number of picodollars. The cheapest
/// models have four.
const PRICE_DECIMALS: usize = 6;

/// The largest amount in dollars. A larger one is a typing error.
const MAX_DOLLARS: u32 = 1_000_000;

/// The schema format by which the configuration's checks recognize a [`Money`] or a [`Price`].
pub const DOLLARS_FORMAT: &str = "dollars";

/// An amount of US dollars, never negative. Written as a decimal number of dollars: `0.00045`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(u128);

/// The price of a million tokens in US dollars, with at most six decimals: `0.15`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price {
    /// It fits: the largest price is a million dollars per million tokens, which is a dollar per token.
    picodollars_a_token: u64,
}

/// Why a text is not an amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseMoneyError {
    /// It is not a decimal number.
    #[error("{shown:?} is no amount of dollars: write it like 2, 0.15 or 0.0375, without a sign or a unit")]
    Malformed {
        /// The text, truncated.
        shown: String,
    },
    /// It has too many decimals.
    #[error("{shown:?} has more than {decimals} decimals")]
    TooFine {
        /// The text, truncated.
        shown: String,
        /// The most decimals.
        decimals: usize,
    },
    /// It is above a million dollars.
    #[error("{shown:?} is more than a million dollars")]
    TooMuch {
        /// The text, truncated.
        shown: String,
    },
}

impl Money {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// An amount in picodollars (10⁻¹² dollars).
    #[must_use]
    pub const fn from_picodollars(picodollars: u128) -> Self {
        Self(picodollars)
    }

    /// The amount in picodollars (10⁻¹² dollars).
    #[must_use]
    pub const fn picodollars(self) -> u128 {
        self.0
    }

    /// The sum, at most the largest amount (10²⁶ dollars).
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::plus)
    }
}

impl Price {
    /// Zero.
    pub const FREE: Self = Self { picodollars_a_token: 0 };

    /// The cost of a number of tokens.
    #[must_use]
    pub fn of(self, tokens: u64) -> Money {
        Money(u128::from(self.picodollars_a_token) * u128::from(tokens))
    }

    fn a_million_tokens(self) -> Money {
        self.of(1_000_000)
    }
}

/// Dollars with at least two decimals, and no more than necessary: `2.00`, `0.00045`.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = format!("{:012}", self.0 % PICOS_PER_DOLLAR);
        let digits = parts.trim_end_matches('0').len().max(2);
        write!(f, "{}.{}", self.0 / PICOS_PER_DOLLAR, &parts[..digits])
    }
}

impl fmt::Debug for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${self}")
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.a_million_tokens().fmt(f)
    }
}

impl fmt::Debug for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${self}/M")
    }
}

impl FromStr for Money {
    type Err = ParseMoneyError;
    fn from_str(text: &str) -> Result<Self, ParseMoneyError> {
        decimal(text, MONEY_DECIMALS).map(Self)
    }
}

impl FromStr for Price {
    type Err = ParseMoneyError;
    fn from_str(text: &str) -> Result<Self, ParseMoneyError> {
        let a_million_tokens = decimal(text, PRICE_DECIMALS)?;
        let picodollars_a_token = u64::try_from(a_million_tokens / 1_000_000)
            .map_err(|_| ParseMoneyError::TooMuch { shown: shown(text) })?;
        Ok(Self { picodollars_a_token })
    }
}

/// Parses a decimal number of dollars into picodollars.
fn decimal(text: &str, decimals: usize) -> Result<u128, ParseMoneyError> {
    let malformed = || ParseMoneyError::Malformed { shown: shown(text) };
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return Err(malformed());
    }
    let part = part.trim_end_matches('0');
    if part.len() > decimals {
        return Err(ParseMoneyError::TooFine { shown: shown(text), decimals });
    }
    let too_much = || ParseMoneyError::TooMuch { shown: shown(text) };
    let whole: u128 = whole.parse().map_err(|_| too_much())?;
    let part: u128 = format!("{part:0<MONEY_DECIMALS$}").parse().map_err(|_| malformed())?;
    let most = u128::from(MAX_DOLLARS);
    if whole > most || (whole == most && part > 0) {
        return Err(too_much());
    }
    Ok(whole * PICOS_PER_DOLLAR + part)
}

/// How much of a text an error repeats.
const MAX_SHOWN_BYTES: usize = 40;

fn shown(text: &str) -> String {
    prefix(text, MAX_SHOWN_BYTES).to_owned()
}

/// Deserializes a number as YAML and JSON represent it.
struct Amount<T>(std::marker::PhantomData<T>);

impl<T: FromStr<Err = ParseMoneyError>> de::Visitor<'_> for Amount<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount of dollars such as 2, 0.15 or \"0.0375\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, dollars: u64) -> Result<T, E> {
        self.visit_str(&dollars.to_string())
    }

    fn visit_i64<E: de::Error>(self, dollars: i64) -> Result<T, E> {
        self.visit_str(&dollars.to_string())
    }

    /// The shortest digits that mean this number are the ones that somebody wrote, up to fifteen of them.
    fn visit_f64<E: de::Error>(self, dollars: f64) -> Result<T, E> {
        self.visit_str(&dollars.to_string())
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Amount(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Amount(std::marker::PhantomData))
    }
}

/// A string, since JSON's readers make a float of a number.
impl Serialize for Money {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Serialize for Price {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

fn schema(description: &str, decimals: usize) -> Schema {
    json_schema!({
        "type": ["number", "string"],
        "format": DOLLARS_FORMAT,
        "minimum": 0,
        "maximum": MAX_DOLLARS,
        "x-decimals": decimals,
        "description": description,
    })
}

impl JsonSchema for Money {
    fn schema_name() -> Cow<'static, str> {
        "Money".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema("US dollars.", MONEY_DECIMALS)
    }
}

impl JsonSchema for Price {
    fn schema_name() -> Cow<'static, str> {
        "Price".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema("US dollars for a million tokens, with at most six decimals.", PRICE_DECIMALS)
    }
}

#[cfg(test)]
#[path = "money_tests.rs"]
mod tests;
