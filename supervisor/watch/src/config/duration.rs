//! Durations of the configuration.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// The longest duration: a day.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A duration: a text with its unit, `500ms`, `30s`, `1m30s`, or a bare number of milliseconds, as OpenTalon
/// had it. More than none and at most a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanVisitor)
    }
}

struct SpanVisitor;

impl Visitor<'_> for SpanVisitor {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"30s\", or a number of milliseconds")
    }

    fn visit_u64<E: Error>(self, millis: u64) -> Result<Span, E> {
        bounded(Duration::from_millis(millis), millis)
    }

    fn visit_i64<E: Error>(self, millis: i64) -> Result<Span, E> {
        bounded(Duration::from_millis(u64::try_from(millis).unwrap_or(0)), millis)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
        if let Ok(millis) = text.trim().parse() {
            return self.visit_u64(millis);
        }
        let duration = humantime::parse_duration(text.trim()).map_err(|_| {
            E::custom(format!("{text:?} is no duration: write it like \"500ms\", \"30s\" or \"1m30s\""))
        })?;
        bounded(duration, text)
    }
}

fn bounded<E: Error>(duration: Duration, shown: impl fmt::Display) -> Result<Span, E> {
    if duration.is_zero() || duration > LONGEST {
        return Err(E::custom(format!("{shown} has to be more than none and at most 24h")));
    }
    Ok(Span(duration))
}
