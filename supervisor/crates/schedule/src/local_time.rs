//! From local times to points in time, at changes of the clock as well.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use crate::cron::CronExpression;

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// More than any clock differs from UTC, so that a local time lies within so much of the same numbers in UTC.
const MOST_OFFSET: SignedDuration = SignedDuration::from_hours(26);

/// The point in time of a fixed local time: of a repeated time the first; of a skipped time the moment right
/// after the skip. Later local times never have earlier points in time.
///
/// Around the last change that its database records, jiff may take a time for skipped or repeated by the rule of later years, and know
/// another change (America/Nuuk on 2023-10-28, America/Indiana/Winamac on 2007-03-11). What it says of a point in time is right there,
/// too, so that counts.
pub(crate) fn fixed_time(zone: &TimeZone, local: DateTime) -> Option<Timestamp> {
    let [before, after] = match zone.to_ambiguous_timestamp(local).offset() {
        AmbiguousOffset::Unambiguous { offset } => [offset, offset],
        AmbiguousOffset::Fold { before, after } | AmbiguousOffset::Gap { before, after } => [before, after],
    };
    let in_utc = Offset::UTC.to_timestamp(local).ok()?;
    let around = [in_utc.checked_sub(MOST_OFFSET), in_utc.checked_add(MOST_OFFSET)];
    let offsets = around.into_iter().flatten().map(|at| zone.to_offset(at)).chain([before, after]);
    let mut points: Vec<Timestamp> = offsets.filter_map(|offset| offset.to_timestamp(local).ok()).collect();
    points.sort_unstable();
    if let Some(shown) = points.iter().find(|at| zone.to_datetime(**at) == local) {
        return Some(*shown);
    }
    // The clock shows less at the first of them, and more at the last: as if it had been changed before, and as if it never was.
    let (mut less, mut more) = (points.first()?.as_second(), points.last()?.as_second());
    while more - less > 1 {
        let middle = less + (more - less) / 2;
        match zone.to_datetime(Timestamp::from_second(middle).ok()?) < local {
            true => less = middle,
            false => more = middle,
        }
    }
    Timestamp::from_second(more).ok()
}

/// The first point in time after `after` of an expression with fixed times.
pub(crate) fn next_fixed(zone: &TimeZone, cron: &CronExpression, after: Timestamp) -> Option<Timestamp> {
    let mut local = zone.to_datetime(after);
    loop {
        local = cron.next_local(local)?;
        // In the second of two equal hours, the times of the first are over.
        match fixed_time(zone, local)? {
            at if at > after => return Some(at),
            _ => local = local.checked_add(SECOND).ok()?,
        }
    }
}

/// The first point in time after `after` of an expression that follows the clock.
pub(crate) fn next_by_clock(zone: &TimeZone, cron: &CronExpression, after: Timestamp) -> Option<Timestamp> {
    // Whole seconds: what comes after a part of one begins with the next.
    let mut from = Timestamp::from_second(after.as_second().checked_add(1)?).ok()?;
    // Between two changes the clock is ahead by the same time.
    loop {
        let offset = zone.to_offset(from);
        let change = zone.following(from).next().map(|change| change.timestamp());
        let found = offset.to_timestamp(cron.next_local(offset.to_datetime(from))?).ok()?;
        match change {
            Some(change) if found >= change => from = change,
            _ => return Some(found),
        }
    }
}

#[cfg(test)]
#[path = "local_time_tests.rs"]
mod tests;
