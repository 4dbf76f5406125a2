//! When schedules run, compared with croniter and Python's time zones. `tests/scripts/deps.sh test` installs both;
//! without them the test is skipped by name.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;
use talon_schedule::{Recurrence, Timestamp, Zone};

/// The pairs of zone and expression.
const PAIRS: usize = 200;
/// How many times of each are compared.
const TIMES: usize = 40;

/// A list, a range, a step, or a value.
fn field(first: u8, last: u8) -> impl Strategy<Value = String> {
    let value = first..=last;
    // Not from a value to itself: croniter takes that for all values.
    let range = (first..last, first..=last).prop_map(|(a, b)| format!("{a}-{}", b.max(a + 1)));
    let step =
        (first..last, 2..=(last / 2).max(2)).prop_map(move |(from, step)| format!("{from}-{last}/{step}"));
    prop_oneof![
        3 => value.clone().prop_map(|value| value.to_string()),
        2 => prop::collection::btree_set(value, 2..5).prop_map(|values: BTreeSet<u8>| {
            values.iter().map(u8::to_string).collect::<Vec<_>>().join(",")
        }),
        1 => range,
        1 => step,
    ]
}

fn expression() -> impl Strategy<Value = String> {
    let star = || Just("*".to_owned());
    let minute =
        prop_oneof![3 => field(0, 59), 1 => star(), 1 => (2_u8..30).prop_map(|step| format!("*/{step}"))];
    let hour =
        prop_oneof![3 => field(0, 23), 2 => star(), 1 => (2_u8..12).prop_map(|step| format!("*/{step}"))];
    // No star with a step: croniter lets a day match either field then, Vixie's cron and ours do not.
    let day = prop_oneof![2 => star(), 1 => field(1, 28)];
    let names = prop::sample::select(vec!["jan", "FEB", "Mar-Jun", "JUL,DEC"]).prop_map(str::to_owned);
    let month = prop_oneof![3 => star(), 1 => field(1, 12), 1 => names];
    let names = prop::sample::select(vec!["mon", "MON-FRI", "Sat,sun", "TUE-thu"]).prop_map(str::to_owned);
    let weekday = prop_oneof![3 => star(), 1 => field(0, 6), 1 => names];
    let second = prop_oneof![4 => Just(None), 1 => field(0, 59).prop_map(Some)];
    (second, minute, hour, day, month, weekday).prop_map(|(second, minute, hour, day, month, weekday)| {
        let five = format!("{minute} {hour} {day} {month} {weekday}");
        second.map_or(five.clone(), |second| format!("{second} {five}"))
    })
}

// Promises: EXT-30
#[test]
fn times_are_those_of_croniter_on_days_without_a_change_of_the_clock() {
    let test = "times_are_those_of_croniter_on_days_without_a_change_of_the_clock";
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let python = repository.join("target/schedule/bin/python");
    if !python.exists() {
        // On CI, where everything has to run, it is a failure.
        assert!(std::env::var_os("CI").is_none(), "{test} would be skipped on CI");
        eprintln!("SKIPPED {test}: there is no target/schedule (tests/scripts/deps.sh test installs it)");
        return;
    }
    // The same pairs each time.
    let mut runner = TestRunner::deterministic();
    let zones = Zone::names();
    let pair = (prop::sample::select(zones), expression(), 946_684_800_i64..1_900_000_000);
    let pairs: Vec<(String, String, i64)> =
        (0..PAIRS).map(|_| pair.new_tree(&mut runner).expect("a value").current()).collect();
    let questions: String = pairs
        .iter()
        .map(|(zone, cron, after)| {
            format!("{}\n", json!({"cron": cron, "zone": zone, "after": after, "count": TIMES}))
        })
        .collect();
    let mut child = Command::new(python)
        .arg(repository.join("tests/schedule/times.py"))
        // PyPI's database of time zones, not the system's.
        .env("PYTHONTZPATH", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    let mut input = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || input.write_all(questions.as_bytes()));
    let output = child.wait_with_output().expect("Python ends");
    writer.join().expect("no panic").expect("all is written");
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).expect("UTF-8");
    let answers: Vec<Vec<(i64, bool)>> =
        answers.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(answers.len(), PAIRS);
    let mut compared = 0;
    for ((zone, cron, after), theirs) in pairs.iter().zip(answers) {
        let recurrence = Recurrence::Cron {
            cron: cron.parse().unwrap_or_else(|error| panic!("{cron}: {error}")),
            zone: zone.parse().expect("a zone"),
        };
        let after = Timestamp::from_second(*after).expect("a time");
        let last = theirs.last().expect("a time").0;
        let ours: BTreeSet<i64> =
            recurrence.times_after(after).map(Timestamp::as_second).take_while(|at| *at <= last).collect();
        let plain: BTreeSet<i64> = theirs.iter().filter(|(_, plain)| *plain).map(|(at, _)| *at).collect();
        let missing: Vec<&i64> = plain.difference(&ours).collect();
        assert!(missing.is_empty(), "{cron} in {zone} after {after}: {missing:?} of croniter are missing");
        // What is additional in ours is on a day with a change.
        let changes: BTreeSet<i64> = theirs.iter().filter(|(_, plain)| !*plain).map(|(at, _)| *at).collect();
        let near_change = |at: &i64| changes.iter().any(|change| (change - at).abs() <= 50 * 3600);
        let added: Vec<&i64> = ours.difference(&plain).filter(|at| !near_change(at)).collect();
        assert!(added.is_empty(), "{cron} in {zone} after {after}: {added:?} are not croniter's");
        compared += plain.len();
    }
    assert!(compared > PAIRS * TIMES * 9 / 10, "{compared}");
}
