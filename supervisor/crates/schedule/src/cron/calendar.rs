//! The times that an expression matches, without a time zone.

use jiff::civil::{Date, DateTime, Time, date};

/// Sets of values as bits: bit 5 of `hours` is five o'clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Calendar {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) days: u64,
    pub(super) months: u64,
    /// From Sunday, which is bit 0.
    pub(super) weekdays: u64,
    /// Whether a day matches by its number or its weekday, instead of by both.
    pub(super) either_day: bool,
    pub(super) follows_clock: bool,
}

/// The most days of each month, in a leap year.
const LONGEST: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl Calendar {
    /// Why no day matches, ever.
    pub(super) fn never_fires(&self) -> Option<String> {
        // Every month has each weekday; and every date that exists falls on each weekday in some year.
        let exists = |month: u8| self.days.trailing_zeros() <= LONGEST[usize::from(month) - 1];
        let months: Vec<u8> = (1..=12).filter(|month| self.months & (1 << month) != 0).collect();
        if self.either_day || months.iter().any(|month| exists(*month)) {
            return None;
        }
        let names: Vec<&str> = months.iter().map(|month| MONTHS[usize::from(*month) - 1]).collect();
        Some(format!("there is no day {} in {}", self.days.trailing_zeros(), names.join(", ")))
    }

    /// The first match at or after `from`.
    pub(super) fn next(&self, from: DateTime) -> Option<DateTime> {
        // A part of a second that has begun is over.
        let from = match from.time().subsec_nanosecond() {
            0 => from,
            _ => floor_second(from).checked_add(jiff::SignedDuration::from_secs(1)).ok()?,
        };
        if self.matches_day(from.date())
            && let Some(time) = self.next_time(from.time())
        {
            return Some(from.date().to_datetime(time));
        }
        let mut day = from.date().tomorrow().ok()?;
        loop {
            if self.months & (1 << day.month()) == 0 {
                day = next_month(day)?;
            } else if self.matches_day(day) {
                return self.next_time(Time::midnight()).map(|time| day.to_datetime(time));
            } else {
                day = day.tomorrow().ok()?;
            }
        }
    }

    fn matches_day(&self, day: Date) -> bool {
        let number = self.days & (1 << day.day()) != 0;
        let weekday = self.weekdays & (1 << day.weekday().to_sunday_zero_offset()) != 0;
        let matches = if self.either_day { number || weekday } else { number && weekday };
        matches && self.months & (1 << day.month()) != 0
    }

    /// The first matching time of day at or after this one.
    fn next_time(&self, from: Time) -> Option<Time> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        let first = |set: u64| lowest(set, 0);
        let found = match lowest(self.hours, hour) {
            Some(same) if same == hour => match lowest(self.minutes, minute) {
                Some(at) if at == minute => match lowest(self.seconds, second) {
                    Some(at) => Some((hour, minute, at)),
                    None => {
                        lowest(self.minutes, minute + 1).zip(first(self.seconds)).map(|(m, s)| (hour, m, s))
                    }
                },
                Some(later) => first(self.seconds).map(|s| (hour, later, s)),
                None => None,
            },
            _ => None,
        };
        let (hour, minute, second) = found.or_else(|| {
            let later = if lowest(self.hours, hour) == Some(hour) { hour + 1 } else { hour };
            Some((lowest(self.hours, later)?, first(self.minutes)?, first(self.seconds)?))
        })?;
        Time::new(hour, minute, second, 0).ok()
    }
}

/// The smallest value of a set that is at least `from`.
fn lowest(set: u64, from: i8) -> Option<i8> {
    let left = set.checked_shr(u32::try_from(from).ok()?)?;
    let skipped = i8::try_from(left.trailing_zeros()).ok()?;
    (left != 0).then(|| from + skipped)
}

fn next_month(day: Date) -> Option<Date> {
    match day.month() {
        12 => (day.year() < 9999).then(|| date(day.year() + 1, 1, 1)),
        month => Some(date(day.year(), month + 1, 1)),
    }
}

/// The same without its part of a second.
fn floor_second(at: DateTime) -> DateTime {
    let time = at.time();
    at.date().at(time.hour(), time.minute(), time.second(), 0)
}
