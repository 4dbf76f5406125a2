//! The fields of an expression: their values and names.

use std::fmt;
use std::ops::RangeInclusive;

/// A field of a cron expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// 0 to 59, in expressions of six fields.
    Second,
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12, or `JAN` to `DEC`.
    Month,
    /// 0 to 7, where 0 and 7 are Sunday, or `SUN` to `SAT`.
    DayOfWeek,
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Field {
    /// The fields of an expression in their order; one of five fields has no seconds.
    pub(super) const ALL: [Self; 6] =
        [Self::Second, Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek];

    /// The values that it takes.
    pub(super) fn values(self) -> RangeInclusive<u8> {
        match self {
            Self::Second | Self::Minute => 0..=59,
            Self::Hour => 0..=23,
            Self::DayOfMonth => 1..=31,
            Self::Month => 1..=12,
            Self::DayOfWeek => 0..=7,
        }
    }

    /// The values that `*` stands for: Sunday counts once.
    pub(super) fn all_values(self) -> RangeInclusive<u8> {
        match self {
            Self::DayOfWeek => 0..=6,
            other => other.values(),
        }
    }

    /// The names of values.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &WEEKDAYS,
            Self::Second | Self::Minute | Self::Hour | Self::DayOfMonth => &[],
        }
    }

    /// The value of a name in any case.
    pub(super) fn value_of(self, name: &str) -> Option<u8> {
        let at = self.names().iter().position(|known| known.eq_ignore_ascii_case(name))?;
        // Twelve names at most.
        u8::try_from(at).ok().map(|at| at + *self.values().start())
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of the month",
            Self::Month => "month",
            Self::DayOfWeek => "day of the week",
        })
    }
}
