use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> Zone {
    name.parse().expect("a zone")
}

fn cron(expression: &str, name: &str) -> Recurrence {
    Recurrence::Cron { cron: expression.parse().expect("an expression"), zone: zone(name) }
}

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

// Promises: EXT-30
#[test]
fn at_is_a_point_in_time_or_a_local_time() {
    let berlin = zone("Europe/Berlin");
    for (text, expected) in [
        ("2026-12-24T18:00:00+01:00", "2026-12-24T17:00:00Z"),
        ("2026-12-24T18:00", "2026-12-24T17:00:00Z"),
        ("2026-12-24 18:00:00", "2026-12-24T17:00:00Z"),
        ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00Z"),
        // Skipped, and repeated.
        ("2026-03-29T02:30", "2026-03-29T01:00:00Z"),
        ("2026-10-25T02:30", "2026-10-25T00:30:00Z"),
    ] {
        assert_eq!(Recurrence::at(text, &berlin), Ok(Recurrence::At(time(expected))), "{text}");
    }
    for text in ["", "tomorrow", "18:00", "2026-02-30T10:00", &"9".repeat(100_000)] {
        let error = Recurrence::at(text, &berlin).expect_err("no time").to_string();
        assert!(error.contains("write it like") && error.len() < 300, "{error}");
    }
    let once = Recurrence::At(time("2026-12-24T18:00:00Z"));
    assert_eq!(once.times_after(time("2026-01-01T00:00:00Z")).count(), 1);
    assert_eq!(once.next_after(time("2026-12-24T18:00:00Z")), None);
}

// Promises: EXT-30
#[test]
fn every_is_the_same_wherever_it_begins() {
    let every = Recurrence::Every("7h".parse().expect("an interval"));
    let first = every.next_after(time("2026-03-29T00:59:59.999Z")).expect("a time");
    assert_eq!(first.as_millisecond() % (7 * 3_600_000), 0);
    let again: Vec<Timestamp> = every.times_after(time("2026-03-29T00:00:00Z")).take(4).collect();
    for pair in again.windows(2) {
        assert_eq!(pair[0].duration_until(pair[1]).as_secs(), 7 * 3600);
    }
}

/// What a zone and an expression come to on the days around a change of the clock.
struct Change {
    zone: &'static str,
    cron: &'static str,
    after: &'static str,
    times: &'static [&'static str],
}

/// By hand, from the zones' published changes.
const CHANGES: &[Change] = &[
    // Berlin skips 02:00 to 03:00 on 2026-03-29: at 01:00 UTC.
    Change {
        zone: "Europe/Berlin",
        cron: "30 2 * * *",
        after: "2026-03-28T00:00:00Z",
        times: &["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"],
    },
    // A list is treated as its parts are.
    Change {
        zone: "Europe/Berlin",
        cron: "30 2,14 * * *",
        after: "2026-03-28T23:00:00Z",
        times: &["2026-03-29T01:00:00Z", "2026-03-29T12:30:00Z", "2026-03-30T00:30:00Z"],
    },
    // Two skipped times run once; and so do a skipped time and the one right after it.
    Change {
        zone: "Europe/Berlin",
        cron: "0,30 2 * * *",
        after: "2026-03-28T23:00:00Z",
        times: &["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z", "2026-03-30T00:30:00Z"],
    },
    Change {
        zone: "Europe/Berlin",
        cron: "0 1-4 * * *",
        after: "2026-03-28T23:00:00Z",
        times: &[
            "2026-03-29T00:00:00Z",
            "2026-03-29T01:00:00Z",
            "2026-03-29T02:00:00Z",
            "2026-03-29T23:00:00Z",
        ],
    },
    // By the clock, a skipped time is none.
    Change {
        zone: "Europe/Berlin",
        cron: "30 * * * *",
        after: "2026-03-29T00:00:00Z",
        times: &["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"],
    },
    Change {
        zone: "Europe/Berlin",
        cron: "*/30 2 * * *",
        after: "2026-03-28T23:00:00Z",
        times: &["2026-03-30T00:00:00Z", "2026-03-30T00:30:00Z"],
    },
    // Berlin repeats 02:00 to 03:00 on 2026-10-25: from 00:00 UTC, and from 01:00 UTC.
    Change {
        zone: "Europe/Berlin",
        cron: "30 2 * * *",
        after: "2026-10-24T12:00:00Z",
        times: &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
    },
    Change {
        zone: "Europe/Berlin",
        cron: "0,30 2,14 * * *",
        after: "2026-10-24T23:00:00Z",
        times: &["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T13:00:00Z"],
    },
    Change {
        zone: "Europe/Berlin",
        cron: "30 * * * *",
        after: "2026-10-24T23:59:59Z",
        times: &["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"],
    },
    Change {
        zone: "Europe/Berlin",
        cron: "*/30 2 * * *",
        after: "2026-10-24T12:00:00Z",
        times: &[
            "2026-10-25T00:00:00Z",
            "2026-10-25T00:30:00Z",
            "2026-10-25T01:00:00Z",
            "2026-10-25T01:30:00Z",
            "2026-10-26T01:00:00Z",
        ],
    },
    // From the middle of the second of two equal hours.
    Change {
        zone: "Europe/Berlin",
        cron: "30 2 * * *",
        after: "2026-10-25T01:10:00Z",
        times: &["2026-10-26T01:30:00Z"],
    },
    Change {
        zone: "America/New_York",
        cron: "15 2 * * *",
        after: "2007-03-10T12:00:00Z",
        times: &["2007-03-11T07:00:00Z", "2007-03-12T06:15:00Z"],
    },
    Change {
        zone: "America/New_York",
        cron: "15 1 * * *",
        after: "2007-11-03T12:00:00Z",
        times: &["2007-11-04T05:15:00Z", "2007-11-05T06:15:00Z"],
    },
    // Half an hour: Lord Howe skips 02:00 to 02:30, and repeats 01:30 to 02:00.
    Change {
        zone: "Australia/Lord_Howe",
        cron: "15 2 * * *",
        after: "2025-10-04T00:00:00Z",
        times: &["2025-10-04T15:30:00Z", "2025-10-05T15:15:00Z"],
    },
    Change {
        zone: "Australia/Lord_Howe",
        cron: "45 1 * * *",
        after: "2025-04-05T00:00:00Z",
        times: &["2025-04-05T14:45:00Z", "2025-04-06T15:15:00Z"],
    },
    // Midnight: Sao Paulo skipped 00:00 to 01:00 on 2018-11-04.
    Change {
        zone: "America/Sao_Paulo",
        cron: "@daily",
        after: "2018-11-03T12:00:00Z",
        times: &["2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"],
    },
    // A whole day: Apia had no 2011-12-30.
    Change {
        zone: "Pacific/Apia",
        cron: "0 9 * * *",
        after: "2011-12-29T12:00:00Z",
        times: &["2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z"],
    },
    Change {
        zone: "Pacific/Apia",
        cron: "0 9 30 12 *",
        after: "2011-01-01T00:00:00Z",
        times: &["2011-12-30T10:00:00Z", "2012-12-29T19:00:00Z"],
    },
    // Two hours, at the base Troll.
    Change {
        zone: "Antarctica/Troll",
        cron: "30 1,2 * * *",
        after: "2026-03-28T12:00:00Z",
        times: &["2026-03-29T01:00:00Z", "2026-03-29T23:30:00Z"],
    },
    // A change that is no daylight saving: Caracas by half an hour on 2016-05-01.
    Change {
        zone: "America/Caracas",
        cron: "45 2 * * *",
        after: "2016-04-30T12:00:00Z",
        times: &["2016-05-01T07:00:00Z", "2016-05-02T06:45:00Z"],
    },
];

// Promises: EXT-32
#[test]
fn at_changes_of_the_clock_the_rule_holds() {
    for Change { zone, cron: expression, after, times } in CHANGES {
        let found: Vec<String> = cron(expression, zone)
            .times_after(time(after))
            .take(times.len())
            .map(|at| at.to_string())
            .collect();
        assert_eq!(found, *times, "{expression} in {zone}");
    }
}

#[test]
fn a_time_that_a_change_concerns_is_told() {
    for (expression, planned, expected) in [
        ("30 2 * * *", "2026-03-29T01:00:00Z", Some(ClockChange::Skipped)),
        ("30 2 * * *", "2026-10-25T00:30:00Z", Some(ClockChange::FirstOfTwo)),
        ("30 * * * *", "2026-10-25T01:30:00Z", Some(ClockChange::SecondOfTwo)),
        ("30 2 * * *", "2026-10-26T01:30:00Z", None),
    ] {
        let recurrence = cron(expression, "Europe/Berlin");
        assert_eq!(recurrence.clock_change(time(planned)), expected, "{expression} at {planned}");
    }
}

proptest! {
    #[test]
    fn times_are_whole_seconds_and_come_after(seconds in 0_i64..2_000_000_000, nanos in 0_i32..1_000_000_000) {
        let after = Timestamp::new(seconds, nanos).expect("a time");
        for (expression, name) in
            [("*/7 * * * * *", "Europe/Dublin"), ("30 2,3 * * *", "Africa/Casablanca"), ("59 59 23 31 12 *", "UTC")]
        {
            let next = cron(expression, name).next_after(after).expect("a time");
            prop_assert!(next > after && next.subsec_nanosecond() == 0);
        }
    }
}
