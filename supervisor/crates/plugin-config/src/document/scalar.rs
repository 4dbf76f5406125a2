//! Resolves scalars whose key has no type: the core schema of YAML 1.2, as far as JSON can represent it.

use serde_json::{Number, Value};

/// Whether an unquoted text is null.
#[must_use]
pub fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// The value of a scalar. `None` for numbers that JSON cannot represent, or that YAML 1.1 reads differently,
/// like `0755`.
#[must_use]
pub fn resolve(text: &str, plain: bool) -> Option<Value> {
    if !plain {
        return Some(Value::String(text.to_owned()));
    }
    if is_null(text) {
        return Some(Value::Null);
    }
    match text {
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        _ => {}
    }
    if let Some(number) = parse_integer(text) {
        let digits = text.trim_start_matches(['-', '+']);
        let ambiguous =
            digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        return if ambiguous { None } else { integer(number) };
    }
    if is_infinite(text) {
        return None;
    }
    if is_float(text) {
        return text.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number);
    }
    Some(Value::String(text.to_owned()))
}

/// An integer as JSON, if JSON's usual types can hold it.
#[must_use]
pub fn integer(number: i128) -> Option<Value> {
    u64::try_from(number).map(Value::from).or_else(|_| i64::try_from(number).map(Value::from)).ok()
}

/// The integer in a JSON value.
#[must_use]
pub fn as_integer(value: &Value) -> Option<i128> {
    value.as_number().and_then(Number::as_i128)
}

fn parse_integer(text: &str) -> Option<i128> {
    if let Some(octal) = text.strip_prefix("0o") {
        return parse_digits(octal, 8);
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return parse_digits(hex, 16);
    }
    let (sign, number) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    parse_digits(number, 10).map(|number| sign * number)
}

fn parse_digits(text: &str, radix: u32) -> Option<i128> {
    // The standard parser would accept a second sign.
    text.chars().all(|c| c.is_digit(radix)).then(|| i128::from_str_radix(text, radix).ok()).flatten()
}

fn is_infinite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    (!before.is_empty() || !after.is_empty())
        && all_digits(before)
        && all_digits(after)
        && exponent.is_none_or(|exponent| !exponent.is_empty() && all_digits(exponent))
}
