//! Types of scalars that depend on their text, and points in time.

use serde_json::{Number, Value};
use talon_store::Timestamp;

/// Whether an unquoted text means nothing.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// The value of an unquoted text: the core schema of YAML 1.2, as far as JSON can represent it. A number that
/// JSON cannot represent, or that older YAML reads differently (`0755`), stays a text.
pub(super) fn resolve(text: String) -> Value {
    match text.as_str() {
        text if is_null(text) => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    // JSON's numbers are YAML's, except for a leading sign or point, which JSON does not allow.
    let number = serde_json::from_str::<Number>(&text).ok();
    // The nearest number, exact to the last digit, which serde_json does not guarantee.
    let exact =
        |number: Number| if number.is_f64() { Number::from_f64(text.parse().ok()?) } else { Some(number) };
    number.and_then(exact).map_or(Value::String(text), Value::Number)
}

/// A text is no point in time. The message follows the name of the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a time like 2026-02-21T15:00:00+01:00, between 1970 and 9999")]
pub(super) struct InvalidTimeError;

/// A point in time: RFC 3339 with any offset and fraction, and the variants that YAML allows: a space instead
/// of the `T`, no offset for UTC, a date alone. `None` for the year 1, which the founding files use for "no
/// time".
pub(super) fn time(text: &str) -> Result<Option<Timestamp>, InvalidTimeError> {
    let text = text.trim();
    if text.is_empty() || text.starts_with("0001-01-01") {
        return Ok(None);
    }
    // Longer texts are no times, and everything below may slice at bytes.
    if text.len() > 64 || !text.is_ascii() || text.len() < 10 {
        return Err(InvalidTimeError);
    }
    let (date, rest) = text.split_at(10);
    let rest = rest.strip_prefix(['T', 't', ' ']).unwrap_or(rest);
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(digits);
    let minutes = offset(zone.trim()).ok_or(InvalidTimeError)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let clock = if clock.is_empty() && fraction.is_empty() && zone.is_empty() { "00:00:00" } else { clock };
    // Digits below a nanosecond are dropped.
    let fraction = &fraction[..fraction.len().min(9)];
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    // An offset could move a date before 1970 past the beginning of 1970; that case is not worth more code.
    let local = Timestamp::try_from(format!("{date}T{clock}.{fraction}Z")).map_err(|_| InvalidTimeError)?;
    Ok(Some(Timestamp::from_millis(local.as_millis() - minutes * 60_000)))
}

/// Minutes east of Greenwich: `Z`, `+01:00`, `+0100`, `+01`, or nothing.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let (sign, zone) = match zone.as_bytes()[0] {
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    let digits: String = zone.chars().filter(|c| *c != ':').collect();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = match digits.len() {
        1 | 2 => (digits.parse::<i64>().ok()?, 0),
        4 => (digits[..2].parse().ok()?, digits[2..].parse::<i64>().ok()?),
        _ => return None,
    };
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
}
