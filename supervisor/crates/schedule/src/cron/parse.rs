//! From a text to a [`Calendar`].
//!
//! A parser of our own: of the crates that parse cron, croner applies the rule for changes of the clock to
//! single values only, and none tells a field that follows the clock from one with fixed times.

use talon_sanitize::{nearest, truncate};

use super::calendar::Calendar;
use super::error::CronError;
use super::field::Field;

/// The longest expression. 256 bytes: every minute of an hour, one by one, has 169.
const MAX_EXPRESSION_BYTES: usize = 256;
/// The longest part of an expression in a message.
const MAX_SHOWN_BYTES: usize = 40;

/// Names for expressions.
const MACROS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// The values of a field, and whether it has a `*`.
#[derive(Debug, Clone, Copy, Default)]
struct Values {
    set: u64,
    star: bool,
}

/// Parses an expression.
pub(super) fn parse(text: &str) -> Result<Calendar, CronError> {
    if text.len() > MAX_EXPRESSION_BYTES {
        return Err(CronError::TooLong { bytes: text.len(), most: MAX_EXPRESSION_BYTES });
    }
    let mut fields: Vec<&str> = text.split_whitespace().collect();
    if let [name] = fields[..]
        && name.starts_with('@')
    {
        fields = expand(name)?.split_whitespace().collect();
    }
    let skipped = match fields.len() {
        5 => 1,
        6 => 0,
        found => return Err(CronError::FieldCount { found }),
    };
    // Of five fields, the second is 0.
    let mut values = [Values { set: 1, star: false }; 6];
    for ((field, text), values) in Field::ALL[skipped..].iter().zip(&fields).zip(&mut values[skipped..]) {
        *values = parse_field(*field, text)?;
    }
    let [second, minute, hour, day, month, weekday] = values;
    let calendar = Calendar {
        seconds: second.set,
        minutes: minute.set,
        hours: hour.set,
        days: day.set,
        months: month.set,
        weekdays: fold_sunday(weekday.set),
        either_day: !day.star && !weekday.star,
        follows_clock: second.star || minute.star || hour.star,
    };
    calendar.never_fires().map_or(Ok(calendar), |why| Err(CronError::NeverFires { why }))
}

/// The expression that a name stands for.
fn expand(name: &str) -> Result<&'static str, CronError> {
    if name.eq_ignore_ascii_case("@reboot") {
        return Err(CronError::Reboot);
    }
    let known = MACROS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    known.map(|(_, expression)| *expression).ok_or_else(|| CronError::UnknownMacro {
        shown: shown(name),
        nearest: nearest(name, MACROS.iter().map(|(known, _)| *known)).into_iter().next(),
    })
}

/// Sunday is 0 and 7.
fn fold_sunday(weekdays: u64) -> u64 {
    (weekdays | (weekdays >> 7)) & 0x7f
}

fn parse_field(field: Field, text: &str) -> Result<Values, CronError> {
    let mut values = Values::default();
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(parse_step(field, step)?)),
            None => (part, None),
        };
        let (first, last) = if range == "*" {
            values.star = true;
            field.all_values().into_inner()
        } else if let Some((first, last)) = range.split_once('-') {
            parse_range(field, text, range, first, last)?
        } else {
            let value = parse_value(field, text, range)?;
            if step.is_some() {
                let instead = part.replacen(range, &format!("{range}-{}", field.all_values().end()), 1);
                return Err(CronError::StepWithoutRange { field, shown: shown(part), instead });
            }
            (value, value)
        };
        for value in (first..=last).step_by(usize::from(step.unwrap_or(1))) {
            values.set |= 1 << value;
        }
    }
    Ok(values)
}

fn parse_range(
    field: Field,
    text: &str,
    range: &str,
    first: &str,
    last: &str,
) -> Result<(u8, u8), CronError> {
    let (start, end) = (parse_value(field, text, first)?, parse_value(field, text, last)?);
    // `SAT-SUN` is no reversed range.
    let end = if field == Field::DayOfWeek && end == 0 && start > 0 { 7 } else { end };
    if start > end {
        let (lowest, highest) = field.all_values().into_inner();
        let instead = format!("{start}-{highest},{lowest}-{end}");
        return Err(CronError::ReversedRange { field, shown: shown(range), instead });
    }
    Ok((start, end))
}

fn parse_step(field: Field, text: &str) -> Result<u8, CronError> {
    let values = field.all_values();
    let most = values.end() - values.start() + 1;
    let step = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u8>().ok()).flatten();
    step.filter(|step| (1..=most).contains(step)).ok_or_else(|| CronError::BadStep {
        field,
        shown: shown(text),
        most,
    })
}

/// A number or a name; `text` is the whole field.
fn parse_value(field: Field, text: &str, part: &str) -> Result<u8, CronError> {
    if part.is_empty() {
        return Err(CronError::EmptyPart { field, shown: shown(text) });
    }
    if part.bytes().all(|byte| byte.is_ascii_digit()) {
        // Twenty digits are more than any field takes, whatever they are.
        let value = part.parse::<u64>().unwrap_or(u64::MAX);
        return u8::try_from(value)
            .ok()
            .filter(|value| field.values().contains(value))
            .ok_or(CronError::OutOfRange { field, value });
    }
    field.value_of(part).ok_or_else(|| unknown(field, part))
}

fn unknown(field: Field, part: &str) -> CronError {
    match foreign_sign(part) {
        Some(sign) => CronError::UnsupportedSign { field, shown: shown(part), sign },
        None => {
            let near = nearest(part, field.names().iter().copied()).into_iter().next();
            CronError::UnknownValue { field, shown: shown(part), nearest: near }
        }
    }
}

/// A sign of Quartz, Jenkins and others: last day, nearest weekday, by hash, n-th weekday, no value.
fn foreign_sign(part: &str) -> Option<char> {
    let letters: String = part.chars().filter(|c| !c.is_ascii_digit()).collect();
    match letters.to_ascii_uppercase().as_str() {
        "L" | "LW" => Some('L'),
        "W" => Some('W'),
        "H" => Some('H'),
        _ => ['#', '?'].into_iter().find(|sign| letters.contains(*sign)),
    }
}

fn shown(text: &str) -> String {
    truncate(text, MAX_SHOWN_BYTES, "…").into_owned()
}
