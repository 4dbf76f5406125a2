use std::collections::BTreeSet;

use jiff::civil::{DateTime, datetime};
use proptest::prelude::*;

use super::*;

fn cron(text: &str) -> CronExpression {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn next(text: &str, from: DateTime) -> Vec<String> {
    let cron = cron(text);
    let second = jiff::SignedDuration::from_secs(1);
    let times =
        std::iter::successors(cron.next_local(from), |last| cron.next_local(last.checked_add(second).ok()?));
    times.take(3).map(|time| time.to_string()).collect()
}

const FROM: DateTime = datetime(2026, 11, 26, 10, 7, 30, 0);

// Promises: EXT-30
#[test]
fn expressions_match_what_their_fields_say() {
    for (text, expected) in [
        ("*/15 * * * *", ["2026-11-26T10:15:00", "2026-11-26T10:30:00", "2026-11-26T10:45:00"]),
        ("0 9 * * 1-5", ["2026-11-27T09:00:00", "2026-11-30T09:00:00", "2026-12-01T09:00:00"]),
        ("0 9 * * MON-fri", ["2026-11-27T09:00:00", "2026-11-30T09:00:00", "2026-12-01T09:00:00"]),
        ("0 0 29 2 *", ["2028-02-29T00:00:00", "2032-02-29T00:00:00", "2036-02-29T00:00:00"]),
        ("0 0 31 * *", ["2026-12-31T00:00:00", "2027-01-31T00:00:00", "2027-03-31T00:00:00"]),
        ("0 12 1 jan,JUL *", ["2027-01-01T12:00:00", "2027-07-01T12:00:00", "2028-01-01T12:00:00"]),
        ("*/20 * * * * *", ["2026-11-26T10:07:40", "2026-11-26T10:08:00", "2026-11-26T10:08:20"]),
        ("0 0 9 * * *", ["2026-11-27T09:00:00", "2026-11-28T09:00:00", "2026-11-29T09:00:00"]),
        ("0 6 * * sat-sun", ["2026-11-28T06:00:00", "2026-11-29T06:00:00", "2026-12-05T06:00:00"]),
        ("0 6 * * 5-7", ["2026-11-27T06:00:00", "2026-11-28T06:00:00", "2026-11-29T06:00:00"]),
        ("0 6 * * 7", ["2026-11-29T06:00:00", "2026-12-06T06:00:00", "2026-12-13T06:00:00"]),
        // The day of the month or of the week, since both are restricted.
        ("0 0 1 * MON", ["2026-11-30T00:00:00", "2026-12-01T00:00:00", "2026-12-07T00:00:00"]),
        // Both, since a field with a star does not restrict by itself.
        ("0 0 */2 * MON", ["2026-12-07T00:00:00", "2026-12-21T00:00:00", "2027-01-11T00:00:00"]),
        ("5-10/5,20 10 * * *", ["2026-11-26T10:10:00", "2026-11-26T10:20:00", "2026-11-27T10:05:00"]),
        ("@daily", ["2026-11-27T00:00:00", "2026-11-28T00:00:00", "2026-11-29T00:00:00"]),
        ("@Weekly", ["2026-11-29T00:00:00", "2026-12-06T00:00:00", "2026-12-13T00:00:00"]),
        ("@hourly", ["2026-11-26T11:00:00", "2026-11-26T12:00:00", "2026-11-26T13:00:00"]),
    ] {
        assert_eq!(next(text, FROM), expected, "{text}");
    }
}

#[test]
fn a_star_in_the_time_of_day_follows_the_clock() {
    for text in ["* 2 * * *", "*/5 2 * * *", "30 * * * *", "30 */2 * * *", "* 30 2 * * *", "0,*/7 2 * * *"] {
        assert!(cron(text).follows_clock(), "{text}");
    }
    for text in ["30 2 * * *", "0,30 2,14 * * *", "0 0-23 * * *", "0-59/15 1-3 * * 0", "0 30 2 * * *"] {
        assert!(!cron(text).follows_clock(), "{text}");
    }
}

// Promises: EXT-31
#[test]
fn what_is_wrong_is_said_with_what_to_write() {
    for (text, expected) in [
        ("", "the expression has 0 fields"),
        ("* * * *", "the expression has 4 fields"),
        ("* * * * * * *", "the expression has 7 fields"),
        ("60 * * * *", "the field for the minute has 60: it takes 0 to 59"),
        ("* 24 * * *", "the field for the hour has 24: it takes 0 to 23"),
        ("* * 0 * *", "the field for the day of the month has 0: it takes 1 to 31"),
        ("* * * 13 *", "the field for the month has 13: it takes 1 to 12, or JAN to DEC"),
        ("* * * * 8", "the field for the day of the week has 8: it takes 0 to 7, or SUN to SAT"),
        ("99999999999999999999999 * * * *", "the field for the minute has 18446744073709551615"),
        ("* * * JNA *", "\"JNA\": did you mean JAN?"),
        ("* * * * MO", "\"MO\": did you mean MON?"),
        ("x * * * *", "the field for the minute has \"x\": it takes 0 to 59"),
        ("-5 * * * *", "the field for the minute has an empty part in \"-5\""),
        ("1,,2 * * * *", "has an empty part in \"1,,2\""),
        ("*/0 * * * *", "the step \"0\": write a step from 1 to 60"),
        ("*/61 * * * *", "the step \"61\": write a step from 1 to 60"),
        ("*/ * * * *", "the step \"\": write a step from 1 to 60"),
        ("5/15 * * * *", "write the range, as in `5-59/15`"),
        ("0 22-2 * * *", "write two ranges, as in `22-23,0-2`"),
        ("0 0 * * FRI-MON", "write two ranges, as in `5-6,0-1`"),
        ("0 0 L * *", "`L` is not supported"),
        ("0 0 15W * *", "`W` is not supported"),
        ("0 0 * * MON#2", "`#` is not supported"),
        ("H * * * *", "`H` is not supported"),
        ("0 0 ? * *", "`?` is not supported"),
        ("@reboot", "@reboot is no time"),
        ("@dayly", "did you mean @daily?"),
        ("@fortnightly", "write @hourly, @daily"),
    ] {
        let error = text.parse::<CronExpression>().expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

// Promises: EXT-31
#[test]
fn what_never_runs_is_refused_with_the_reason() {
    for (text, why) in [
        ("0 0 30 2 *", "there is no day 30 in February"),
        ("0 0 31 4,6,9,11 *", "there is no day 31 in April, June, September, November"),
        ("0 0 30-31 FEB *", "there is no day 30 in February"),
    ] {
        let error = text.parse::<CronExpression>().expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    // A weekday is another way to match.
    assert!("0 0 30 2 MON".parse::<CronExpression>().is_ok());
}

#[test]
fn messages_and_expressions_are_bounded() {
    let long = format!("{} * * * *", "1,".repeat(200_000));
    let error = long.parse::<CronExpression>().expect_err("too long");
    assert!(matches!(error, CronError::TooLong { .. }), "{error}");
    let strange = format!("{} * * * *", "ü".repeat(100));
    let error = strange.parse::<CronExpression>().expect_err("no field").to_string();
    assert!(error.len() < 200, "{error}");
}

/// A field of few values, from all of its own.
fn values(from: u8, to: u8) -> impl Strategy<Value = BTreeSet<u8>> {
    prop_oneof![
        3 => prop::collection::btree_set(from..=to, 1..4),
        1 => Just((from..=to).collect()),
    ]
}

fn text(values: &BTreeSet<u8>, from: u8, to: u8) -> String {
    if values.len() == usize::from(to - from) + 1 {
        return "*".to_owned();
    }
    values.iter().map(u8::to_string).collect::<Vec<_>>().join(",")
}

proptest! {
    /// Compared with a walk over every minute.
    #[test]
    fn no_time_is_left_out_and_none_is_added(
        minutes in values(0, 59), hours in values(0, 23), days in values(1, 31), months in values(1, 12),
        weekdays in values(0, 6), start in 0_i64..20_000_000,
    ) {
        let expression = format!(
            "{} {} {} {} {}", text(&minutes, 0, 59), text(&hours, 0, 23), text(&days, 1, 31), text(&months, 1, 12),
            text(&weekdays, 0, 6),
        );
        let Ok(cron) = expression.parse::<CronExpression>() else {
            // Only for days that do not exist.
            prop_assert!(days.iter().all(|day| *day > 28) && weekdays.len() == 7, "{}", expression);
            return Ok(());
        };
        let from = datetime(2024, 1, 1, 0, 0, 0, 0)
            .checked_add(jiff::SignedDuration::from_secs(start * 7)).expect("a time");
        let either = days.len() < 31 && weekdays.len() < 7;
        let matches = |at: DateTime| {
            let has = |set: &BTreeSet<u8>, value: i8| set.contains(&value.unsigned_abs());
            let (day, weekday) = (has(&days, at.day()), has(&weekdays, at.weekday().to_sunday_zero_offset()));
            has(&minutes, at.minute()) && has(&hours, at.hour()) && has(&months, at.month())
                && if either { day || weekday } else { day && weekday }
        };
        let minute = jiff::SignedDuration::from_secs(60);
        let mut at = from.date().at(from.hour(), from.minute(), 0, 0);
        if at < from {
            at = at.checked_add(minute).expect("a time");
        }
        let found = cron.next_local(from);
        // Ten days are walked; what comes later is compared at its own time.
        for _ in 0..14_400 {
            if matches(at) {
                prop_assert_eq!(found, Some(at), "{} from {}", expression, from);
                return Ok(());
            }
            at = at.checked_add(minute).expect("a time");
        }
        let found = found.expect("a time");
        prop_assert!(found >= at && matches(found), "{} from {}: {}", expression, from, found);
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,60}") {
        let _parsed = text.parse::<CronExpression>();
    }

    #[test]
    fn nearly_expressions_do_not_make_it_panic(text in "[0-9*/,@LWa-z -]{0,40}") {
        if let Ok(cron) = text.parse::<CronExpression>() {
            prop_assert!(cron.next_local(FROM).is_some());
        }
    }
}
