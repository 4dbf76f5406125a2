//! From local times to points in time, at changes of the clock as well.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use crate::cron::CronExpression;

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The point in time of a fixed local time: of a repeated time the first; of a skipped time the moment right
/// after the skip. Later local times never have earlier points in time.
///
/// Around the last change that its database records, jiff may take a time for skipped or repeated by the rule of later years
/// (America/Nuuk on 2023-10-28). What it says of a point in time is right there, too, so that counts.
pub(crate) fn fixed_time(zone: &TimeZone, local: DateTime) -> Option<Timestamp> {
    let offset = zone.to_ambiguous_timestamp(local).offset();
    let candidates = match offset {
        AmbiguousOffset::Unambiguous { offset } => [offset, offset],
        AmbiguousOffset::Fold { before, after } | AmbiguousOffset::Gap { before, after } => [before, after],
    };
    let points = candidates.into_iter().filter_map(|offset| offset.to_timestamp(local).ok());
    if let Some(shown) = points.filter(|at| zone.to_datetime(*at) == local).min() {
        return Some(shown);
    }
    match offset {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(local).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(local).ok(),
        AmbiguousOffset::Gap { before, .. } => {
            // As if the clock had not been changed: at the change, or later by less than was skipped.
            let unchanged = before.to_timestamp(local).ok()?;
            let change = zone.preceding(unchanged.checked_add(SECOND).ok()?).next()?;
            Some(change.timestamp())
        }
    }
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
