//! Checks the documents of runs: that all of them agree, that reading returns what was written, and that a
//! regression is found. Only files are read, nothing is measured.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use proptest::prelude::*;
use talon_bench::document::{Document, GoalResult, LoadedResult};
use talon_bench::figures::{Figures, Unit};
use talon_bench::goals::{Bound, GOALS};
use talon_bench::machine::RunOrigin;
use talon_bench::neighbours::CONDITION;
use talon_bench::samples::Spread;
use talon_bench::table;
use talon_tests::{Scratch, repository};

/// The goals whose ratios the README shows.
const HEADLINES: [&str; 3] = ["in-process-rate", "host-p50", "go-rate"];

fn read(path: &str) -> String {
    let path = repository().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of the table row that begins with this text.
fn row<'t>(text: &'t str, what: &str) -> Option<Vec<&'t str>> {
    let cells =
        |line: &'t str| line.trim().trim_matches('|').split('|').map(str::trim).collect::<Vec<&str>>();
    text.lines().filter(|line| line.starts_with('|')).map(cells).find(|cells| cells[0] == what)
}

/// `1.31× (1.20 to 1.40)` without its spread.
fn median(reached: &str) -> &str {
    reached.split(" (").next().unwrap_or(reached)
}

// Promises: SPEED-2
#[test]
fn every_goal_stands_in_the_table() {
    let table = read("docs/benchmarks.md");
    for goal in GOALS {
        let found = row(&table, goal.what).unwrap_or_else(|| panic!("no row says {:?}", goal.what));
        assert_eq!(found[1], goal.target(), "{}", goal.id);
        let measured = found[2] != table::NOT_MEASURED;
        let judged = measured && goal.bound != Bound::Unbounded;
        assert_eq!(judged, !found[3].is_empty(), "{}: met or not is said of what was measured", goal.id);
    }
}

// Promises: SPEED-3
#[test]
fn the_readme_says_what_the_table_says() {
    let (readme, table) = (read("README.md"), read("docs/benchmarks.md"));
    for id in HEADLINES {
        let goal = GOALS.iter().find(|goal| goal.id == id).expect("the headlines are goals");
        let measured = row(&table, goal.what).expect("every goal stands in the table");
        let shown =
            row(&readme, goal.what).unwrap_or_else(|| panic!("no row of README.md says {:?}", goal.what));
        assert_eq!(
            shown[1..3],
            [measured[1], median(measured[2])],
            "README.md is not what was measured: {id}"
        );
    }
}

// Promises: SPEED-2
#[test]
fn what_was_not_measured_is_said() {
    let table = table::goals(&Document::new(Figures::default(), origin("c")));
    for goal in GOALS {
        assert_eq!(row(&table, goal.what).expect("every goal stands in it")[2], table::NOT_MEASURED);
    }
}

#[test]
fn a_yardstick_that_took_nothing_gives_no_ratio() {
    let mut book = Figures::default();
    let mut page = book.case("many/1", Some("bare spawner"));
    page.add("Talon", "idle CPU", Unit::PercentOfACore, 0.25);
    page.add("bare spawner", "idle CPU", Unit::PercentOfACore, 0.0);
    let document = Document::new(book, origin("c"));
    let table = table::whole(&document);
    assert_eq!(row(&table, "Talon").expect("it was measured")[1], "0.25 % of a core");
}

fn origin(commit: &str) -> RunOrigin {
    RunOrigin {
        commit: commit.to_owned(),
        date: "2026-01-01".to_owned(),
        machine: "m".to_owned(),
        quick: true,
        seconds: 1,
        noise: BTreeMap::new(),
        neighbour_cores: BTreeMap::new(),
    }
}

/// Three rounds of a call that takes so long, where a bare one takes ten.
fn run(commit: &str, ours: f64) -> Document {
    let mut book = Figures::default();
    for round in 0..3 {
        let mut page = book.case("calls/1 KiB/c1", Some("bare tonic"));
        page.add("in process", "p50", Unit::Microseconds, ours + f64::from(round) / 10.0);
        page.add("bare tonic", "p50", Unit::Microseconds, 10.0);
    }
    Document::new(book, origin(commit))
}

fn compare(before: &Path, after: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_talon-bench"));
    command.arg("compare").arg(before).arg(after).output().expect("it was just built")
}

// Promises: SPEED-4
#[test]
fn a_regression_is_named_and_fails_the_comparison() {
    let scratch = Scratch::new();
    let before = scratch.write("before.json", &run("before", 11.0).to_json());
    let same = scratch.write("same.json", &run("same", 11.1).to_json());
    let slower = scratch.write("slower.json", &run("slower", 15.0).to_json());

    let fine = compare(&before, &same);
    let said = String::from_utf8_lossy(&fine.stdout).into_owned();
    assert_eq!(fine.status.code(), Some(0), "{said}");
    assert!(said.contains("none got worse"), "{said}");

    let worse = compare(&before, &slower);
    let said = String::from_utf8_lossy(&worse.stdout).into_owned();
    assert_eq!(worse.status.code(), Some(1), "{said}");
    assert!(said.contains("calls/1 KiB/c1: in process, p50") && said.contains("over bare tonic"), "{said}");
    assert!(!said.contains("| calls/1 KiB/c1: bare tonic"), "the yardstick is not ours to get worse: {said}");
    assert_eq!(compare(&slower, &before).status.code(), Some(0), "faster is no regression");
}

// Promises: SPEED-7
#[test]
fn a_noisy_suite_is_named_however_quiet_the_others_were() {
    let noise = [("calls", 0.02), ("many", 0.4)].map(|(suite, noise)| (suite.to_owned(), noise)).into();
    let noisy = Document::new(Figures::default(), RunOrigin { noise, ..origin("c") });
    let said = table::goals(&noisy);
    assert!(said.contains("too noisy during many (40 %)") && !said.contains("calls (2 %)"), "{said}");
    assert!(!table::goals(&run("c", 11.0)).contains("too noisy"));
}

// Promises: SPEED-7
#[test]
fn what_varied_too_much_is_marked() {
    let mut book = Figures::default();
    for ours in [10.0, 11.0, 30.0] {
        let mut page = book.case("calls/1 KiB/c1", Some("bare tonic"));
        page.add("in process", "p50", Unit::Microseconds, ours);
        page.add("bare tonic", "p50", Unit::Microseconds, 10.0);
    }
    let table = table::whole(&Document::new(book, origin("c")));
    assert_eq!(row(&table, "in process").expect("it was measured")[1], "~11.0 µs (~1.10×)");
    assert_eq!(row(&table, "bare tonic").expect("it was measured")[1], "10.0 µs");
}

#[test]
fn a_short_run_is_not_compared_with_a_full_one() {
    let scratch = Scratch::new();
    let short = scratch.write("short.json", &run("c", 11.0).to_json());
    let mut full = run("c", 11.0);
    full.origin.quick = false;
    let refused = compare(&short, &scratch.write("full.json", &full.to_json()));
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("two of a kind"));
}

#[test]
fn what_is_no_run_is_refused() {
    let scratch = Scratch::new();
    let good = scratch.write("good.json", &run("c", 11.0).to_json());
    let other = run("c", 11.0).to_json().replacen("\"schema\": 2", "\"schema\": 3", 1);
    for (name, text, word) in [("none.json", "{}", "talon-bench"), ("other.json", &other, "shape")] {
        let refused = compare(&good, &scratch.write(name, text));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(name) && said.contains(word), "{said}");
    }
}

/// Three rounds of calls by 64 callers, quiet and beside busy neighbours; the bare contender answers a
/// thousand a second in both.
fn loaded_run(quiet: f64, busy: f64) -> Document {
    let mut book = Figures::default();
    for (condition, ours) in [("", quiet), (CONDITION, busy)] {
        book.set_condition(condition);
        for _ in 0..3 {
            let mut page = book.case("calls/1 KiB/c64", Some("bare tonic"));
            page.add("in process", "calls", Unit::PerSecond, ours);
            page.add("bare tonic", "calls", Unit::PerSecond, 1000.0);
        }
    }
    let neighbour_cores = [("calls".to_owned(), 1.25)].into();
    Document::new(book, RunOrigin { neighbour_cores, ..origin("c") })
}

// Promises: SPEED-8
#[test]
fn each_ratio_stands_beside_its_quiet_one() {
    let goal = &GOALS[0];
    for (busy, worse, met) in
        [(1600.0, "1.00×", "yes"), (1280.0, "1.25×", "yes"), (1000.0, "1.60×", "**no**")]
    {
        let document = loaded_run(1600.0, busy);
        let table = table::loaded(&document);
        let cells = row(&table, goal.what).expect("every ratio stands in it");
        assert_eq!(
            cells[1..],
            [
                "1.60× (1.60 to 1.60)".to_owned(),
                format!("{0}× ({0} to {0})", table::number(busy / 1000.0)),
                worse.to_owned(),
                met.to_owned()
            ]
        );
        assert!(table.contains("1.25 in calls"), "how busy it was is said: {table}");
        // In the file, too.
        let loaded = document.goals[0].loaded.expect("measured");
        assert_eq!((loaded.times_worse, loaded.met), (Some(1600.0 / busy), Some(met == "yes")));
        assert!(
            document.goals[0].met.expect("it has a bound"),
            "the quiet goal is judged by the quiet value"
        );
    }
}

// Promises: SPEED-8
#[test]
fn what_was_not_measured_beside_neighbours_is_said() {
    let table = table::loaded(&loaded_run(1600.0, 1600.0));
    let ratios = GOALS.iter().filter(|goal| goal.is_ratio());
    for goal in ratios.skip(1) {
        assert_eq!(row(&table, goal.what).expect("every ratio stands in it")[2], table::NOT_MEASURED);
    }
    assert!(table::loaded(&run("c", 11.0)).contains("Not measured"));
}

fn units() -> impl Strategy<Value = Unit> {
    prop::sample::select(vec![
        Unit::Microseconds,
        Unit::Milliseconds,
        Unit::PerSecond,
        Unit::GigabytesPerSecond,
        Unit::Mebibytes,
        Unit::PercentOfACore,
        Unit::Count,
    ])
}

/// Any number that JSON has.
fn numbers() -> impl Strategy<Value = f64> {
    prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO
}

fn origins() -> impl Strategy<Value = RunOrigin> {
    let noise = prop::collection::btree_map(".*", numbers(), 0..3);
    let cores = prop::collection::btree_map(".*", numbers(), 0..3);
    (".*", ".*", ".*", any::<bool>(), any::<u64>(), noise, cores).prop_map(
        |(commit, date, machine, quick, seconds, noise, neighbour_cores)| RunOrigin {
            commit,
            date,
            machine,
            quick,
            seconds,
            noise,
            neighbour_cores,
        },
    )
}

fn spreads() -> impl Strategy<Value = Spread> {
    (numbers(), numbers(), numbers()).prop_map(|(median, low, high)| Spread { median, low, high })
}

fn loaded() -> impl Strategy<Value = Option<LoadedResult>> {
    let result = (spreads(), prop::option::of(numbers()), any::<Option<bool>>());
    prop::option::of(result.prop_map(|(spread, times_worse, met)| LoadedResult { spread, times_worse, met }))
}

fn reached() -> impl Strategy<Value = GoalResult> {
    (".*", ".*", ".*", ".*", spreads(), any::<Option<bool>>(), loaded()).prop_map(
        |(id, what, goal, unit, spread, met, loaded)| GoalResult {
            id,
            what,
            goal,
            unit,
            spread,
            met,
            loaded,
        },
    )
}

type Written = (String, String, String, Unit, Option<&'static str>, Vec<f64>);

fn figures() -> impl Strategy<Value = Vec<Written>> {
    let yardstick = prop::option::of(prop::sample::select(vec!["bare tonic", "no jail"]));
    let figure = (".*", ".*", ".*", units(), yardstick, prop::collection::vec(numbers(), 1..5));
    prop::collection::vec(figure, 0..5)
}

proptest! {
    #[test]
    fn a_run_comes_back_as_it_was(
        origin in origins(),
        notes in prop::collection::vec(".*", 0..3),
        goals in prop::collection::vec(reached(), 0..5),
        figures in figures(),
    ) {
        let mut book = Figures::default();
        for note in notes {
            book.note(note);
        }
        for (case, contender, metric, unit, yardstick, samples) in figures {
            for sample in samples {
                book.case(case.clone(), yardstick).add(&contender, &metric, unit, sample);
            }
        }
        let document = Document { goals, ..Document::new(book, origin) };
        let scratch = Scratch::new();
        let path = scratch.write("run.json", &document.to_json());
        prop_assert_eq!(Document::read(&path).expect("it was just written"), document);
    }
}
