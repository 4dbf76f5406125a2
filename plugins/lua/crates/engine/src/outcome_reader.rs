//! Reads what a function returned. Three forms mean the same: a new table, the changed `ctx`, or nothing after changing it.

use std::collections::BTreeMap;

use mlua::{Table, Value};

use crate::limits::{
    MAX_MESSAGE_BYTES, MAX_METADATA_KEY_BYTES, MAX_METADATA_KEYS, MAX_METADATA_SCANNED,
    MAX_METADATA_VALUE_BYTES, MAX_REASON_CHARS, MAX_TEXT_BYTES,
};
use crate::{CallError, Context, DeliveryStatus, FailureKind, Outcome, Point};

/// The longest wait that a retry may ask for: a day. The agent allows less.
const MAX_AFTER_SECONDS: f64 = 86_400.0;

/// What the return of a function means.
pub(crate) fn read(
    point: Point,
    given: &Context,
    ctx: Table,
    returned: &Value,
) -> Result<Outcome, CallError> {
    match point {
        Point::Filter | Point::PreHook | Point::PostHook | Point::Hook => {
            verdict(point, given, ctx, returned)
        }
        Point::OnEvent => delivery(returned),
        Point::Task => task(returned),
    }
}

fn refused(message: impl Into<String>) -> CallError {
    CallError::new(FailureKind::Returned, message)
}

fn wrong(point: Point, value: &Value, forms: &str) -> CallError {
    refused(format!("{}() returned a {}: return {forms}", point.as_str(), value.type_name()))
}

fn verdict(point: Point, given: &Context, ctx: Table, returned: &Value) -> Result<Outcome, CallError> {
    let said = match returned {
        Value::Nil => ctx,
        Value::Table(table) => table.clone(),
        other => {
            return Err(wrong(
                point,
                other,
                "ctx, a table such as { drop = true, reason = \"…\" }, or nothing",
            ));
        }
    };
    match field(&said, "drop")? {
        Value::Nil | Value::Boolean(false) => {}
        Value::Boolean(true) => {
            let reason = optional_text(&said, "reason")?.unwrap_or_default();
            return Ok(Outcome::Drop { reason: reason.chars().take(MAX_REASON_CHARS).collect() });
        }
        other => return Err(refused(format!("`drop` is a {}: it is true or false", other.type_name()))),
    }
    let message = optional_text(&said, "message")?.filter(|message| *message != given.message);
    if let Some(message) = &message {
        if point == Point::Filter {
            return Err(refused("a filter cannot change the message: name the function pre_hook"));
        }
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(refused(format!(
                "the message has {} bytes, and {MAX_MESSAGE_BYTES} are the most: return a shorter one",
                message.len()
            )));
        }
    }
    let metadata = match field(&said, "metadata")? {
        Value::Nil => BTreeMap::new(),
        Value::Table(table) => metadata(&table, given)?,
        other => {
            return Err(refused(format!("`metadata` is a {}: it is a table of texts", other.type_name())));
        }
    };
    Ok(Outcome::Continue { message, metadata })
}

/// The keys whose values are new or others.
fn metadata(table: &Table, given: &Context) -> Result<BTreeMap<String, String>, CallError> {
    let mut set = BTreeMap::new();
    for (scanned, pair) in table.pairs::<Value, Value>().enumerate() {
        if scanned == MAX_METADATA_SCANNED {
            return Err(refused(format!("`metadata` has more than {MAX_METADATA_SCANNED} keys: set fewer")));
        }
        let (key, value) = pair.map_err(|error| refused(error.to_string()))?;
        let Value::String(key) = key else {
            return Err(refused(format!("a key of `metadata` is a {}: it is a text", key.type_name())));
        };
        let key = utf8(&key, "a key of `metadata`")?;
        if key.len() > MAX_METADATA_KEY_BYTES {
            return Err(refused(format!("a key of `metadata` has more than {MAX_METADATA_KEY_BYTES} bytes")));
        }
        let name = format!("metadata[{key:?}]");
        let value = match value {
            Value::String(text) => utf8(&text, &name)?,
            // As Lua itself writes them into texts.
            Value::Boolean(value) => value.to_string(),
            Value::Integer(value) => value.to_string(),
            Value::Number(value) => value.to_string(),
            other => {
                return Err(refused(format!(
                    "{name} is a {}: it is a text; use tostring()",
                    other.type_name()
                )));
            }
        };
        if value.len() > MAX_METADATA_VALUE_BYTES {
            return Err(refused(format!(
                "{name} has {} bytes, and {MAX_METADATA_VALUE_BYTES} are the most",
                value.len()
            )));
        }
        if given.metadata.get(&key) != Some(&value) {
            set.insert(key, value);
        }
    }
    if set.len() > MAX_METADATA_KEYS {
        return Err(refused(format!(
            "`metadata` has {} new keys, and {MAX_METADATA_KEYS} are the most",
            set.len()
        )));
    }
    Ok(set)
}

fn delivery(returned: &Value) -> Result<Outcome, CallError> {
    const FORMS: &str = "nothing, false to try again, { retry = true, reason = \"…\", after_seconds = 60 }, or { refused = \
                         true, reason = \"…\" }";
    let outcome = |status| Outcome::Delivery { status, reason: String::new(), after_seconds: None };
    let table = match returned {
        Value::Nil | Value::Boolean(true) => return Ok(outcome(DeliveryStatus::Delivered)),
        Value::Boolean(false) => return Ok(outcome(DeliveryStatus::Retry)),
        Value::Table(table) => table,
        other => return Err(wrong(Point::OnEvent, other, FORMS)),
    };
    let is_set = |name| match field(table, name)? {
        Value::Nil | Value::Boolean(false) => Ok(false),
        Value::Boolean(true) => Ok(true),
        other => Err(refused(format!("`{name}` is a {}: it is true or false", other.type_name()))),
    };
    let status = match (is_set("retry")?, is_set("refused")?) {
        (true, true) => return Err(refused("both `retry` and `refused` are set: set one of them")),
        (true, false) => DeliveryStatus::Retry,
        (false, true) => DeliveryStatus::Refused,
        (false, false) => DeliveryStatus::Delivered,
    };
    let seconds = match field(table, "after_seconds")? {
        Value::Nil => None,
        Value::Integer(seconds) => Some(seconds as f64),
        Value::Number(seconds) => Some(seconds),
        other => return Err(refused(format!("`after_seconds` is a {}: it is a number", other.type_name()))),
    };
    let after_seconds = match seconds {
        None => None,
        Some(seconds) if (0.0..=MAX_AFTER_SECONDS).contains(&seconds) => Some(seconds.ceil() as u64),
        Some(_) => return Err(refused(format!("`after_seconds` is a number from 0 to {MAX_AFTER_SECONDS}"))),
    };
    let reason = optional_text(table, "reason")?.unwrap_or_default();
    Ok(Outcome::Delivery { status, reason: reason.chars().take(MAX_REASON_CHARS).collect(), after_seconds })
}

fn task(returned: &Value) -> Result<Outcome, CallError> {
    let text = match returned {
        Value::Nil => String::new(),
        Value::String(text) => utf8(text, "the text")?,
        other => return Err(wrong(Point::Task, other, "a text, or nothing")),
    };
    if text.len() > MAX_TEXT_BYTES {
        return Err(refused(format!("the text has {} bytes, and {MAX_TEXT_BYTES} are the most", text.len())));
    }
    Ok(Outcome::Text(text))
}

/// A field, without metamethods.
fn field(table: &Table, name: &str) -> Result<Value, CallError> {
    table.raw_get(name).map_err(|error| refused(error.to_string()))
}

fn optional_text(table: &Table, name: &str) -> Result<Option<String>, CallError> {
    match field(table, name)? {
        Value::Nil => Ok(None),
        Value::String(text) => utf8(&text, &format!("`{name}`")).map(Some),
        other => Err(refused(format!("`{name}` is a {}: it is a text; use tostring()", other.type_name()))),
    }
}

fn utf8(text: &mlua::LuaString, what: &str) -> Result<String, CallError> {
    match text.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(refused(format!(
            "{what} is not UTF-8: string.sub and patterns count bytes, and may have cut a character"
        ))),
    }
}
