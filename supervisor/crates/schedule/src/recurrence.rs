//! The planned times of a job.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::AmbiguousOffset;
use jiff::{SignedDuration, Timestamp};
use talon_sanitize::truncate;

use crate::cron::CronExpression;
use crate::interval::Interval;
use crate::local_time;
use crate::zone::Zone;

/// The longest text of a time in a message.
const MAX_SHOWN_BYTES: usize = 60;

/// When a job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recurrence {
    /// By a cron expression in a time zone.
    Cron {
        /// The expression.
        cron: CronExpression,
        /// The time zone of its times.
        zone: Zone,
    },
    /// Every so often: at the multiples of the interval since the beginning of 1970 in UTC. They are the same
    /// for every supervisor and after every restart, and changes of the clock do not matter.
    Every(Interval),
    /// Once.
    At(Timestamp),
}

/// How a change of the clock concerns a planned time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockChange {
    /// The clock skips its local time: it is right after the skip.
    Skipped,
    /// The clock shows its local time twice, and it is the first.
    FirstOfTwo,
    /// The clock shows its local time twice, and it is the second.
    SecondOfTwo,
}

/// Why a text is not a time for `at`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{shown:?} is no time: write it like 2026-12-24T18:00:00+01:00, or like 2026-12-24T18:00 together with a time zone"
)]
pub struct RecurrenceError {
    /// The text, truncated.
    pub shown: String,
}

impl fmt::Display for Recurrence {
    /// `cron 0 9 * * 1-5`, `every 6h` or `at 2026-12-24T17:00:00Z`, without the time zone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron { cron, .. } => write!(f, "cron {cron}"),
            Self::Every(interval) => write!(f, "every {interval}"),
            Self::At(at) => write!(f, "at {at}"),
        }
    }
}

impl Recurrence {
    /// Once, at the time in `text`: RFC 3339 with an offset, or a local time of `zone`. A local time that the
    /// clock skips is the moment right after the skip, and one that it repeats is the first.
    ///
    /// # Errors
    /// [`RecurrenceError`] if it is neither.
    pub fn at(text: &str, zone: &Zone) -> Result<Self, RecurrenceError> {
        let local = || text.parse::<DateTime>().ok().filter(|_| !text.contains('['));
        text.parse::<Timestamp>()
            .ok()
            .or_else(|| local_time::fixed_time(zone.time_zone(), local()?))
            .map(|at| Self::At(floor_second(at)))
            .ok_or_else(|| RecurrenceError { shown: truncate(text, MAX_SHOWN_BYTES, "…").into_owned() })
    }

    /// The first planned time after `after`, in whole milliseconds; `None` if there is none before the year
    /// 10000.
    #[must_use]
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron { cron, zone } if cron.follows_clock() => {
                local_time::next_by_clock(zone.time_zone(), cron, after)
            }
            Self::Cron { cron, zone } => local_time::next_fixed(zone.time_zone(), cron, after),
            Self::Every(interval) => {
                let (every, now) = (interval.as_millis(), after.as_millisecond());
                // A part of a millisecond that has begun belongs to it.
                let next = (now.div_euclid(every)).checked_add(1)?.checked_mul(every)?;
                Timestamp::from_millisecond(next).ok()
            }
            Self::At(at) => (*at > after).then_some(*at),
        }
    }

    /// The planned times after `after`, in their order.
    pub fn times_after(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        std::iter::successors(self.next_after(after), move |last| self.next_after(*last))
    }

    /// How a change of the clock concerns one of its planned times; `None` if it does not.
    #[must_use]
    pub fn clock_change(&self, planned: Timestamp) -> Option<ClockChange> {
        let Self::Cron { cron, zone } = self else { return None };
        let local = zone.time_zone().to_datetime(planned);
        if cron.next_local(local) != Some(local) {
            return Some(ClockChange::Skipped);
        }
        match zone.time_zone().to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Fold { before, .. } if zone.time_zone().to_offset(planned) == before => {
                Some(ClockChange::FirstOfTwo)
            }
            AmbiguousOffset::Fold { .. } => Some(ClockChange::SecondOfTwo),
            _ => None,
        }
    }

    /// The time zone in which a person reads its times.
    #[must_use]
    pub fn zone(&self) -> Zone {
        match self {
            Self::Cron { zone, .. } => zone.clone(),
            Self::Every(_) | Self::At(_) => Zone::utc(),
        }
    }
}

fn floor_second(at: Timestamp) -> Timestamp {
    let part = SignedDuration::from_nanos(i64::from(at.subsec_nanosecond()));
    at.checked_sub(part).unwrap_or(at)
}

#[cfg(test)]
#[path = "recurrence_tests.rs"]
mod tests;
