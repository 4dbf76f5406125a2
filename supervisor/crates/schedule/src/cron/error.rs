//! Why a text is not a cron expression.

use super::field::Field;

/// Why a text is not a cron expression. Each message ends with what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// It is longer than an expression has to be.
    #[error(
        "the expression has {bytes} bytes, and may have {most}: use ranges and steps instead of long lists"
    )]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The most bytes.
        most: usize,
    },
    /// It has the wrong number of fields.
    #[error(
        "the expression has {found} fields: write five (minute, hour, day of the month, month, day of the week), or six with the \
         second in front"
    )]
    FieldCount {
        /// The number of fields.
        found: usize,
    },
    /// An expression such as `@daily` that does not exist.
    #[error(
        "there is no {shown:?}: {}",
        near_or_list(.nearest, "write @hourly, @daily, @weekly, @monthly or @yearly")
    )]
    UnknownMacro {
        /// The text, truncated.
        shown: String,
        /// The nearest expression, if there is one.
        nearest: Option<String>,
    },
    /// `@reboot`, which is no time.
    #[error("@reboot is no time: a job starts at planned times only, never because the agent starts")]
    Reboot,
    /// A part of a field is empty, such as in `1,,2`.
    #[error("the field for the {field} has an empty part in {shown:?}: remove the extra `,`, `-` or `/`")]
    EmptyPart {
        /// The field.
        field: Field,
        /// The field's text, truncated.
        shown: String,
    },
    /// A part of a field is neither a number nor a name.
    #[error("the field for the {field} has {shown:?}: {}", near_or_list(.nearest, &takes(.field)))]
    UnknownValue {
        /// The field.
        field: Field,
        /// The part, truncated.
        shown: String,
        /// The nearest name, if there is one.
        nearest: Option<String>,
    },
    /// A part uses a sign of another kind of cron.
    #[error("the field for the {field} has {shown:?}: `{sign}` is not supported; {}", takes(.field))]
    UnsupportedSign {
        /// The field.
        field: Field,
        /// The part, truncated.
        shown: String,
        /// The sign.
        sign: char,
    },
    /// A value is too small or too large.
    #[error("the field for the {field} has {value}: {}", takes(.field))]
    OutOfRange {
        /// The field.
        field: Field,
        /// The value.
        value: u64,
    },
    /// A range's end is before its start.
    #[error(
        "the field for the {field} has the range {shown:?}, which ends before it begins: write two ranges, as in `{instead}`"
    )]
    ReversedRange {
        /// The field.
        field: Field,
        /// The range, truncated.
        shown: String,
        /// Two ranges that mean the same.
        instead: String,
    },
    /// A step that is zero or larger than the field.
    #[error("the field for the {field} has the step {shown:?}: write a step from 1 to {most}")]
    BadStep {
        /// The field.
        field: Field,
        /// The step, truncated.
        shown: String,
        /// The largest step that makes a difference.
        most: u8,
    },
    /// A step after a single value, which is read in two ways elsewhere.
    #[error(
        "the field for the {field} has {shown:?}, a step after a single value, which other programs read in two ways: write the range, \
         as in `{instead}`"
    )]
    StepWithoutRange {
        /// The field.
        field: Field,
        /// The part, truncated.
        shown: String,
        /// The range with the same step.
        instead: String,
    },
    /// No day matches, ever.
    #[error("it never runs: {why}; write a day that exists")]
    NeverFires {
        /// The reason.
        why: String,
    },
}

/// What a field takes.
fn takes(field: &Field) -> String {
    let values = field.values();
    let (first, last) = (values.start(), values.end());
    match field.names() {
        [one, .., end] => format!("it takes {first} to {last}, or {one} to {end}"),
        _ => format!("it takes {first} to {last}"),
    }
}

fn near_or_list(nearest: &Option<String>, list: &str) -> String {
    nearest.as_ref().map_or_else(|| list.to_owned(), |near| format!("did you mean {near}?"))
}
