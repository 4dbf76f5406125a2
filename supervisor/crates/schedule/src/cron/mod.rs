//! Cron expressions.

mod calendar;
mod error;
mod field;
mod parse;

use std::fmt;
use std::str::FromStr;

use jiff::civil::DateTime;

pub use error::CronError;
pub use field::Field;

use calendar::Calendar;

/// A cron expression: `minute hour day-of-month month day-of-week`, with a field for seconds in front if there
/// are six.
///
/// Each field is a list of `*`, a value, a range, or a range or `*` with a step. Months and weekdays also have
/// names of three letters, and Sunday is 0 and 7. `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`,
/// `@midnight` and `@hourly` stand for the usual expressions. As with Vixie's cron, a day has to match the day
/// of the month *or* the day of the week if both fields are restricted, which they are without a `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronExpression {
    text: String,
    calendar: Calendar,
}

impl CronExpression {
    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it follows the clock: a field of its time of day has a `*`. Otherwise it has fixed times. The
    /// difference counts at changes of the clock only, see the [crate](crate#changes-of-the-clock).
    #[must_use]
    pub fn follows_clock(&self) -> bool {
        self.calendar.follows_clock
    }

    /// The first matching time of day and date at or after `from`; `None` after the year 9999.
    #[must_use]
    pub fn next_local(&self, from: DateTime) -> Option<DateTime> {
        self.calendar.next(from)
    }
}

impl FromStr for CronExpression {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let calendar = parse::parse(text)?;
        Ok(Self { text: text.split_whitespace().collect::<Vec<_>>().join(" "), calendar })
    }
}

impl fmt::Display for CronExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
