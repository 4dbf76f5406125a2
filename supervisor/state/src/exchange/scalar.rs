//! What a scalar means where its key does not say, and points in time.

use serde_json::{Number, Value};
use talon_store::Timestamp;

/// Whether an unquoted text means nothing.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// The value of an unquoted text: the core schema of YAML 1.2, as far as JSON can say it. A number that JSON does not
/// know, or that older YAML reads otherwise (`0755`), stays a text.
pub(super) fn resolve(text: String) -> Value {
    match text.as_str() {
        text if is_null(text) => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    // JSON's numbers are YAML's, but for a sign or a point at the beginning, which no writer of JSON leaves there.
    let number = serde_json::from_str::<Number>(&text).ok();
    // The nearest number, to the last digit, which that reader does not promise.
    let exact =
        |number: Number| if number.is_f64() { Number::from_f64(text.parse().ok()?) } else { Some(number) };
    number.and_then(exact).map_or(Value::String(text), Value::Number)
}

/// A point in time: RFC 3339 with any offset, any fraction, and what YAML allows beside it: a space instead of the `T`,
/// no offset for UTC, a date alone. `None` for the year 1, by which the founding files say that there is none.
pub(super) fn time(text: &str) -> Result<Option<Timestamp>, String> {
    let wrong = || "must be a time like 2026-02-21T15:00:00+01:00, between 1970 and 9999".to_owned();
    let text = text.trim();
    if text.is_empty() || text.starts_with("0001-01-01") {
        return Ok(None);
    }
    // Longer ones are none, and everything below may cut at bytes.
    if text.len() > 64 || !text.is_ascii() || text.len() < 10 {
        return Err(wrong());
    }
    let (date, rest) = text.split_at(10);
    let rest = rest.strip_prefix(['T', 't', ' ']).unwrap_or(rest);
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.').unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(digits);
    let minutes = offset(zone.trim()).ok_or_else(wrong)?;
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let clock = if clock.is_empty() && fraction.is_empty() && zone.is_empty() { "00:00:00" } else { clock };
    // What is below a nanosecond is below what anybody keeps.
    let fraction = &fraction[..fraction.len().min(9)];
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    // The offset may lead across the beginning of 1970 from a date before it, which is not worth more code.
    let local = Timestamp::try_from(format!("{date}T{clock}.{fraction}Z")).map_err(|_| wrong())?;
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
