//! The guard's stack without IO, whole and layer by layer, timed and counted row by row. It runs the guard's
//! own benchmarks.
//!
//! A row builds on another one, and is reported as the difference to it, because alone it does not show the
//! cost of its layer. The two always run directly after each other.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::figures::Unit;
use crate::samples::Samples;
use crate::turns::Measurement;

#[expect(dead_code, reason = "not all of what the guard's own benches run is shown here")]
#[path = "../../../supervisor/crates/guard/benches/stack/fixture.rs"]
mod fixture;

/// The name of the whole stack in the table.
pub const WHOLE: &str = "whole stack";

/// The same, boxed, recorded and in a log span, as in a supervisor.
const RECORDED: &str = "whole, recorded";

/// How long a row runs before the next has its turn: a thousand times the cost of reading the clock, and
/// short enough that a pause of the machine affects few of them.
const ROW_TIME: Duration = Duration::from_micros(100);

/// How often a turn goes through all rows of a table; the median of the differences is reported.
const SWEEPS: usize = 25;

/// Warm-up calls: tables, buffers and thread-locals are allocated once and are not part of a call's cost.
const WARM_UP: u32 = 100;

/// How many calls are counted; they are alike, so that their mean is a whole number except for rare growth.
const COUNTED: u32 = 100;

/// A text and how it goes through the stack. It has to be created and run within a runtime that has a clock.
pub struct LayerTable {
    case: &'static str,
    rows: Vec<Row>,
}

struct Row {
    /// Its name in the table; `None` for a row that only others build on.
    shown: Option<&'static str>,
    /// The row that it builds on.
    over: Option<usize>,
    /// Calls in one measurement.
    calls: u32,
    run: fixture::Case,
}

/// All tables.
#[must_use]
pub fn layer_tables() -> Vec<LayerTable> {
    let kib = fixture::KIB;
    vec![
        LayerTable::new("guard/prose, 1 KiB", "prose", kib, true),
        LayerTable::new("guard/JSON-ish, 1 KiB", "json-ish", kib, false),
        LayerTable::new("guard/with hits, 1 KiB", "hits", kib, false),
        LayerTable::new("guard/prose, 64 KiB", "prose", 64 * kib, true),
    ]
}

/// Only the whole stack, for a process that records and logs.
#[must_use]
pub fn recorded_tables() -> Vec<LayerTable> {
    let mut sheet = LayerTable::new("guard/prose, 1 KiB", "prose through a Stack", fixture::KIB, false);
    for row in &mut sheet.rows {
        row.shown = row.shown.map(|_| RECORDED);
    }
    vec![sheet]
}

impl LayerTable {
    fn new(case: &'static str, text: &str, bytes: usize, with_layers: bool) -> Self {
        let whole = fixture::wholes(bytes).into_iter();
        let mut cases: Vec<fixture::Case> =
            whole.filter(|case| case.group != "whole" || case.name == text).collect();
        if with_layers {
            let known: Vec<&str> = cases.iter().map(|case| case.name).collect();
            cases.extend(fixture::layers(bytes).into_iter().filter(|case| !known.contains(&case.name)));
        }
        let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
        let place = |name: &str| names.iter().position(|known| *known == name);
        let over: Vec<Option<usize>> = cases.iter().map(|case| place(case.over)).collect();
        let shown = |case: &fixture::Case| match case.group {
            "whole" => Some(WHOLE),
            "layer" if !case.name.starts_with("bare ") => Some(case.name),
            _ => None,
        };
        let rows = cases.into_iter().zip(over);
        let rows = rows.map(|(run, over)| Row { shown: shown(&run), over, calls: 1, run });
        Self { case, rows: rows.collect() }
    }

    /// Times all rows for one turn.
    pub fn timed(&mut self) -> Vec<Measurement> {
        for row in &mut self.rows {
            row.calibrate();
        }
        let mut sweeps: Vec<Vec<f64>> = Vec::with_capacity(SWEEPS);
        for _ in 0..SWEEPS {
            sweeps.push(self.rows.iter_mut().map(Row::microseconds).collect());
        }
        let middle = |of: &dyn Fn(&Vec<f64>) -> f64| {
            let all = Samples(sweeps.iter().map(of).collect());
            all.spread().map_or(f64::NAN, |spread| spread.median)
        };
        self.measurements("time", Unit::Microseconds, |row, over| {
            middle(&|sweep| sweep[row] - over.map_or(0.0, |over| sweep[over]))
        })
    }

    /// Counts all rows for one turn. `count` runs something and returns how often it allocated memory, and
    /// how many bytes.
    pub fn counted(&mut self, mut count: impl FnMut(&mut dyn FnMut()) -> (u64, u64)) -> Vec<Measurement> {
        let counts: Vec<(f64, f64)> = self
            .rows
            .iter_mut()
            .map(|row| {
                row.run_calls(WARM_UP);
                let (allocations, bytes) = count(&mut || row.run_calls(COUNTED));
                (allocations as f64 / f64::from(COUNTED), bytes as f64 / f64::from(COUNTED))
            })
            .collect();
        let own = |of: fn(&(f64, f64)) -> f64| {
            let counts = &counts;
            move |row: usize, over: Option<usize>| {
                of(&counts[row]) - over.map_or(0.0, |over| of(&counts[over]))
            }
        };
        let mut told = self.measurements("allocations", Unit::Count, own(|(allocations, _)| *allocations));
        told.extend(self.measurements("allocated bytes", Unit::Count, own(|(_, bytes)| *bytes)));
        told
    }

    fn measurements(
        &self,
        metric: &str,
        unit: Unit,
        own: impl Fn(usize, Option<usize>) -> f64,
    ) -> Vec<Measurement> {
        let shown = self.rows.iter().enumerate().filter_map(|(at, row)| Some((at, row.shown?, row.over)));
        shown
            .map(|(at, shown, over)| Measurement::new(self.case, shown, metric, unit, own(at, over)))
            .collect()
    }
}

impl Row {
    fn run_calls(&mut self, calls: u32) {
        for _ in 0..calls {
            black_box(&mut self.run).once();
        }
    }

    /// Chooses the number of calls that fill one measurement.
    fn calibrate(&mut self) {
        let begin = Instant::now();
        self.run_calls(WARM_UP);
        let one = begin.elapsed() / WARM_UP;
        let calls = ROW_TIME.as_nanos() / one.as_nanos().max(1);
        self.calls = u32::try_from(calls).unwrap_or(u32::MAX).max(1);
    }

    /// The time of one call in microseconds, over one measurement.
    fn microseconds(&mut self) -> f64 {
        let begin = Instant::now();
        self.run_calls(self.calls);
        begin.elapsed().as_secs_f64() * 1e6 / f64::from(self.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_row_but_a_call_alone_stands_over_another() {
        for sheet in layer_tables().into_iter().chain(recorded_tables()) {
            let alone: Vec<&str> =
                sheet.rows.iter().filter(|row| row.over.is_none()).map(|row| row.run.name).collect();
            assert_eq!(alone, ["a call"], "{}", sheet.case);
        }
    }

    #[tokio::test]
    async fn what_is_recorded_is_the_whole_and_nothing_else() {
        let told = recorded_tables().remove(0).counted(|run| {
            run();
            (0, 0)
        });
        assert!(told.len() == 2 && told.iter().all(|told| told.contender == RECORDED), "{told:?}");
    }

    #[tokio::test]
    async fn the_whole_and_each_of_the_twelve_layers_are_told() {
        let mut sheet = layer_tables().remove(0);
        let told = sheet.counted(|run| {
            run();
            (u64::from(COUNTED), 0)
        });
        let contenders: Vec<&str> = told
            .iter()
            .filter(|told| told.metric == "allocations")
            .map(|told| told.contender.as_str())
            .collect();
        assert_eq!(contenders.len(), 13);
        assert_eq!(contenders[0], WHOLE);
        // A layer whose row allocates as often as the one it builds on allocates nothing itself.
        assert!(told.iter().all(|told| told.value == 0.0), "{told:?}");
    }
}
