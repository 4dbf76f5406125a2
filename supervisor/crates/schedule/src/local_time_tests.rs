//! The rule for changes of the clock, against a definition that walks through time second by minute.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::zone::Zone;

const MINUTE: SignedDuration = SignedDuration::from_secs(60);
/// How far around a change is looked.
const AROUND: SignedDuration = SignedDuration::from_hours(28);

const EXPRESSIONS: [&str; 9] = [
    "30 2 * * *",
    "15,45 0-3 * * *",
    "30 2,14 * * *",
    "0 0 * * *",
    "5 */2 * * *",
    "*/20 1-3 * * *",
    "0 0-23 * * 0,6",
    "10 * * * *",
    "59 23 * * *",
];

/// Each minute of a time, and what the clock shows in it.
fn minutes(zone: &TimeZone, from: Timestamp, to: Timestamp) -> Vec<(Timestamp, DateTime)> {
    std::iter::successors(Some(from), |last| last.checked_add(MINUTE).ok())
        .take_while(|at| *at <= to)
        .map(|at| (at, zone.to_datetime(at)))
        .collect()
}

/// What the rule says, by its words alone: what the clock shows at each minute.
fn by_definition(minutes: &[(Timestamp, DateTime)], cron: &CronExpression) -> Vec<Timestamp> {
    let matches = |local: DateTime| cron.next_local(local) == Some(local);
    if cron.follows_clock() {
        return minutes.iter().filter(|(_, local)| matches(*local)).map(|(at, _)| *at).collect();
    }
    // The first moment at which the clock shows each time; and where it jumps ahead, what it leaves out.
    let mut found = BTreeMap::new();
    let mut last: Option<DateTime> = None;
    for &(at, local) in minutes {
        let mut shown = last.and_then(|last| last.checked_add(MINUTE).ok()).unwrap_or(local);
        while shown < local {
            if matches(shown) {
                found.entry(shown).or_insert(at);
            }
            shown = shown.checked_add(MINUTE).expect("a time");
        }
        if matches(local) {
            found.entry(local).or_insert(at);
        }
        last = Some(last.map_or(local, |last| last.max(local)));
    }
    let mut times: Vec<Timestamp> = found.into_values().collect();
    times.sort_unstable();
    times.dedup();
    times
}

/// Compares every change of a zone in these years with the definition; returns how many there were.
fn check_changes(name: &str, years: std::ops::Range<i64>) -> usize {
    let zone: Zone = name.parse().expect("a zone");
    let zone = zone.time_zone();
    let start = |year: i64| Timestamp::from_second((year - 1970) * 31_556_952).expect("a time");
    let changes: Vec<Timestamp> = zone
        .following(start(years.start))
        .map(|change| change.timestamp())
        .take_while(|at| *at < start(years.end))
        .collect();
    for change in &changes {
        // Whole minutes, so that both look at the same ones.
        let minute = change.as_second().div_euclid(60) * 60;
        let around = Timestamp::from_second(minute).expect("a time");
        let from = around.checked_sub(AROUND).expect("a time");
        let to = around.checked_add(AROUND).expect("a time");
        let minutes = minutes(zone, from, to);
        for text in EXPRESSIONS {
            let cron: CronExpression = text.parse().expect("an expression");
            let mut found = Vec::new();
            let mut at = from.checked_sub(SECOND).expect("a time");
            loop {
                let next = if cron.follows_clock() {
                    next_by_clock(zone, &cron, at)
                } else {
                    next_fixed(zone, &cron, at)
                };
                at = next.expect("a time");
                if at > to {
                    break;
                }
                found.push(at);
            }
            assert_eq!(found, by_definition(&minutes, &cron), "{text} in {name} at {change}");
        }
    }
    changes.len()
}

// Promises: EXT-32
#[test]
fn the_rule_holds_at_changes_of_every_kind() {
    // An hour, half an hour, two hours, at midnight, around Ramadan, in the other direction, and a whole day.
    for (name, years) in [
        ("Europe/Berlin", 2024..2028),
        ("Europe/Dublin", 2024..2026),
        ("America/New_York", 2005..2009),
        ("Australia/Lord_Howe", 2024..2026),
        ("Antarctica/Troll", 2024..2026),
        ("Africa/Cairo", 2023..2026),
        ("Africa/Casablanca", 2023..2026),
        ("Asia/Gaza", 2023..2025),
        ("Pacific/Apia", 2010..2013),
        ("America/Caracas", 2007..2017),
        ("Asia/Pyongyang", 2015..2019),
        // Its last recorded change moves no clock, and the rule of later years would have moved it.
        ("America/Nuuk", 2022..2025),
        // To another zone and to summer time at once, where the rule of later years knows another change.
        ("America/Indiana/Winamac", 2006..2009),
    ] {
        assert!(check_changes(name, years) >= 2, "{name}");
    }
}

// Promises: EXT-32
#[test]
#[ignore = "all zones for forty years: minutes; `make long-schedule` runs it"]
fn the_rule_holds_at_every_change_of_every_zone() {
    let names = Zone::names();
    let (next, changes) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    changes.fetch_add(check_changes(name, 2000..2041), Ordering::Relaxed);
                }
            });
        }
    });
    let changes = changes.into_inner();
    assert!(changes > 10_000, "{changes}");
    println!("{changes} changes in {} zones", names.len());
}
