//! Hours of each day, in a time zone.

use jiff::civil::{Date, Time};
use jiff::{Timestamp, ToSpan as _};

use crate::local_time::fixed_time;
use crate::zone::Zone;

/// Hours that begin and end at a time of day, also across midnight.
///
/// At changes of the clock both ends are what a job at fixed times has: of a time that the clock repeats the
/// first, of a time that it skips the moment right after the skip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyHours {
    from: Time,
    to: Time,
    zone: Zone,
}

impl DailyHours {
    /// From one time of day to another, each as hour and minute; to the same one is a whole day. `None` if one
    /// is no time of day.
    #[must_use]
    pub fn new(from: (u8, u8), to: (u8, u8), zone: Zone) -> Option<Self> {
        let time = |(hour, minute): (u8, u8)| {
            Time::new(i8::try_from(hour).ok()?, i8::try_from(minute).ok()?, 0, 0).ok()
        };
        Some(Self { from: time(from)?, to: time(to)?, zone })
    }

    /// When the hours end that contain this point in time; `None` if none do. The beginning belongs to them,
    /// the end does not.
    #[must_use]
    pub fn end_of(&self, at: Timestamp) -> Option<Timestamp> {
        let today = self.zone.time_zone().to_datetime(at).date();
        // Of yesterday across midnight. Tomorrow's may have begun where the clock skips midnight.
        let days = [today.yesterday(), Ok(today), today.tomorrow()];
        days.into_iter()
            .filter_map(|day| self.of_day(day.ok()?))
            .find(|(begin, end)| *begin <= at && at < *end)
            .map(|(_, end)| end)
    }

    /// The hours that begin on a day.
    fn of_day(&self, day: Date) -> Option<(Timestamp, Timestamp)> {
        let last = if self.from < self.to { day } else { day.checked_add(1.day()).ok()? };
        let zone = self.zone.time_zone();
        Some((fixed_time(zone, day.to_datetime(self.from))?, fixed_time(zone, last.to_datetime(self.to))?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hours(from: (u8, u8), to: (u8, u8), zone: &str) -> DailyHours {
        DailyHours::new(from, to, zone.parse().expect("a zone")).expect("times of day")
    }

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_night_ends_on_the_next_day() {
        let night = hours((22, 0), (7, 0), "Europe/Berlin");
        for (now, end) in [
            ("2026-11-25T20:59:59Z", None),
            ("2026-11-25T21:00:00Z", Some("2026-11-26T06:00:00Z")),
            ("2026-11-26T00:30:00Z", Some("2026-11-26T06:00:00Z")),
            ("2026-11-26T05:59:59Z", Some("2026-11-26T06:00:00Z")),
            ("2026-11-26T06:00:00Z", None),
        ] {
            assert_eq!(night.end_of(at(now)), end.map(at), "{now}");
        }
        assert_eq!(DailyHours::new((24, 0), (7, 0), Zone::utc()), None);
    }

    #[test]
    fn a_night_with_another_clock_has_its_own_length() {
        let night = hours((22, 0), (7, 0), "Europe/Berlin");
        // Spring: eight hours; autumn: ten.
        assert_eq!(night.end_of(at("2026-03-28T21:00:00Z")), Some(at("2026-03-29T05:00:00Z")));
        assert_eq!(night.end_of(at("2026-10-24T20:00:00Z")), Some(at("2026-10-25T06:00:00Z")));
        // An end in the hour that is skipped, and in the one that is repeated: the first.
        let early = hours((22, 0), (2, 30), "Europe/Berlin");
        assert_eq!(early.end_of(at("2026-03-29T00:59:59Z")), Some(at("2026-03-29T01:00:00Z")));
        assert_eq!(early.end_of(at("2026-03-29T01:00:00Z")), None);
        assert_eq!(early.end_of(at("2026-10-25T00:29:59Z")), Some(at("2026-10-25T00:30:00Z")));
        assert_eq!(early.end_of(at("2026-10-25T01:10:00Z")), None, "02:10 for the second time");
    }

    proptest! {
        /// The clock decides, but for the hours of a change; and the end is the next moment outside.
        #[test]
        fn what_the_clock_shows_decides(
            seconds in 1_700_000_000_i64..2_200_000_000,
            from in (0_u8..24, 0_u8..60),
            to in (0_u8..24, 0_u8..60),
            zone in prop::sample::select(vec![
                "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Cairo",
            ]),
        ) {
            prop_assume!(from != to);
            let hours = hours(from, to, zone);
            let now = Timestamp::from_second(seconds).expect("a time");
            let end = hours.end_of(now);
            let zone = hours.zone.time_zone();
            let shown = zone.to_datetime(now).time();
            let by_clock = if hours.from < hours.to {
                shown >= hours.from && shown < hours.to
            } else {
                shown >= hours.from || shown < hours.to
            };
            let is_quiet = |at: Timestamp| zone.to_offset(at);
            let day = jiff::SignedDuration::from_hours(30);
            let changes = is_quiet(now.checked_sub(day).expect("a time")) != is_quiet(now.checked_add(day).expect("a time"));
            prop_assert!(end.is_some() == by_clock || changes, "{} {} {:?}", now, shown, end);
            if let Some(end) = end {
                prop_assert!(end > now && end <= now.checked_add(day).expect("a time"));
                prop_assert_ne!(hours.end_of(end), Some(end));
            }
        }
    }
}
