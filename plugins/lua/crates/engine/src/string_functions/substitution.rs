//! `string.gsub`

use std::ops::Range;

use mlua::{Function, LuaString, MultiValue, Table, Value};

use super::arguments::{Arguments, type_name};
use super::failure::Failure;
use super::result_text::ResultText;
use super::returned::{Returned, value};
use crate::clock::Clock;
use crate::pattern::{Captured, Matcher, Meter};

/// The byte before the number of a capture.
const ESCAPE: u8 = b'%';

/// What comes in the place of a match.
enum Replacement<'a> {
    /// A text, with `%1` and its like in it.
    Text(LuaString),
    /// The value of the first capture.
    Table(&'a Table),
    /// What it returns for the captures.
    Function(&'a Function),
}

/// `string.gsub(subject, pattern, replacement, most)`. `pcall` is the machine's: through it, an error of a function stays the value
/// that it is. The result keeps to `memory_bytes`, the limit of the machine.
pub(super) fn gsub(
    arguments: &Arguments<'_>,
    clock: &Clock,
    pcall: &Function,
    memory_bytes: usize,
) -> Returned {
    let (text, pattern) = (arguments.text(1)?, arguments.text(2)?);
    let (subject, pattern) = (&*text.as_bytes(), &*pattern.as_bytes());
    // A text has at most 1 GiB.
    let most = arguments.integer(4, i32::try_from(subject.len()).unwrap_or(i32::MAX).saturating_add(1))?;
    let replacement = match arguments.get(3) {
        Some(Value::Table(table)) => Replacement::Table(table),
        Some(Value::Function(function)) => Replacement::Function(function),
        Some(Value::String(_) | Value::Integer(_) | Value::Number(_)) => {
            Replacement::Text(arguments.text(3)?)
        }
        _ => return Err(arguments.refused(3, "string/function/table")),
    };
    let is_over = || clock.stopped().is_some();
    let anchored = pattern.strip_prefix(b"^");
    let mut matcher = Matcher::new(subject, anchored.unwrap_or(pattern), Meter::new(&is_over));
    let mut result = ResultText::new(arguments.lua(), memory_bytes);
    // What is before it is in the result.
    let (mut at, mut count) = (0, 0);
    while count < most {
        let found = match anchored {
            Some(_) => matcher.match_at(at)?.map(|end| at..end),
            None => matcher.search(at)?,
        };
        let Some(found) = found else {
            break;
        };
        count += 1;
        result.push(&subject[at..found.start])?;
        replacement.add(arguments, pcall, &matcher, &subject[found.clone()], &found, &mut result)?;
        at = found.end;
        if found.is_empty() {
            let Some(byte) = subject.get(at..=at) else {
                break;
            };
            result.push(byte)?;
            at += 1;
        }
        if anchored.is_some() {
            break;
        }
    }
    let replaced = if count == 0 {
        text.clone()
    } else {
        result.push(&subject[at..])?;
        result.finish()?
    };
    Ok(MultiValue::from_iter([Value::String(replaced), Value::Number(f64::from(count))]))
}

impl Replacement<'_> {
    /// Adds what comes in the place of a match.
    fn add(
        &self,
        arguments: &Arguments<'_>,
        pcall: &Function,
        matcher: &Matcher<'_, '_>,
        matched: &[u8],
        whole: &Range<usize>,
        result: &mut ResultText<'_>,
    ) -> Result<(), Failure> {
        let lua = arguments.lua();
        let new = match self {
            Self::Text(text) => return add_text(&text.as_bytes(), matcher, matched, whole, result),
            Self::Table(table) => {
                let key = value(lua, matcher.capture(0, whole)?)?;
                table.get::<Value>(key)?
            }
            Self::Function(function) => {
                let mut values = MultiValue::from_iter([Value::Function((*function).clone())]);
                for index in 0..matcher.capture_count().max(1) {
                    values.push_back(value(lua, matcher.capture(index, whole)?)?);
                }
                let mut returned = pcall.call::<MultiValue>(values)?.into_iter();
                let succeeded = returned.next();
                let first = returned.next().unwrap_or(Value::Nil);
                match succeeded {
                    Some(Value::Boolean(true)) => first,
                    _ => return Err(Failure::of_callback(first)),
                }
            }
        };
        match new {
            Value::Nil | Value::Boolean(false) => result.push(matched),
            Value::String(text) => result.push(&text.as_bytes()),
            Value::Integer(_) | Value::Number(_) => {
                let text = lua.coerce_string(new)?;
                result.push(&text.map(|text| text.as_bytes().to_vec()).unwrap_or_default())
            }
            other => Err(Failure::Raised(format!("invalid replacement value (a {})", type_name(&other)))),
        }
    }
}

/// Adds a text in which `%0` to `%9` stand for captures, and `%%` for itself.
fn add_text(
    text: &[u8],
    matcher: &Matcher<'_, '_>,
    matched: &[u8],
    whole: &Range<usize>,
    result: &mut ResultText<'_>,
) -> Result<(), Failure> {
    let mut rest = text;
    while let Some(at) = memchr::memchr(ESCAPE, rest) {
        result.push(&rest[..at])?;
        match rest.get(at + 1) {
            Some(b'0') => result.push(matched)?,
            Some(digit @ b'1'..=b'9') => match matcher.capture(usize::from(digit - b'1'), whole)? {
                Captured::Text(text) => result.push(text)?,
                Captured::Position(place) => result.push(place.to_string().as_bytes())?,
            },
            Some(&ESCAPE) => result.push(&[ESCAPE])?,
            _ => return Err(Failure::Raised("invalid use of '%' in replacement string".to_owned())),
        }
        rest = &rest[at + 2..];
    }
    result.push(rest)
}
