//! The result of a soak as text and JSON.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::sampler::{METRICS, Sample};
use super::totals::SoakTotals;
use super::trend::{Allowance, ERRORS, Trend};
use crate::machine::RunOrigin;
use crate::table::{number, write_table};

/// One run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) origin: Option<RunOrigin>,
    minutes: f64,
    calls: u64,
    /// Calls that failed because their plugin was killed.
    died: u64,
    events: u64,
    /// As reported to the slow listener.
    events_missed: u64,
    kills: u64,
    configuration_reloads: u64,
    plugin_reloads: u64,
    problems: u64,
    /// The first problems.
    told: Vec<String>,
    figures: Vec<Row>,
    samples: Vec<Sample>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    unit: &'static str,
    trend: Option<Trend>,
    allowed: Allowance,
    flat: bool,
}

impl Report {
    pub(super) fn of(length: Duration, tally: &SoakTotals, samples: Vec<Sample>) -> Self {
        let row = |(at, looked): (usize, &super::sampler::MetricSpec)| {
            let values: Vec<(f64, f64)> =
                samples.iter().map(|sample| (sample.seconds, sample.values[at])).collect();
            let trend = Trend::of(&values);
            let flat = trend.is_some_and(|trend| trend.is_flat(looked.allowed));
            Row { name: looked.name, unit: looked.unit, trend, allowed: looked.allowed, flat }
        };
        let figures = METRICS.iter().enumerate().map(row).collect();
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let [kills, configuration_reloads, plugin_reloads] = [0, 1, 2].map(|at| count(&tally.troubles[at]));
        let (problems, told) = tally.problems();
        Self {
            origin: None,
            minutes: length.as_secs_f64() / 60.0,
            calls: count(&tally.calls),
            died: count(&tally.died),
            events: count(&tally.events),
            events_missed: count(&tally.missed),
            kills,
            configuration_reloads,
            plugin_reloads,
            problems,
            told,
            figures,
            samples,
        }
    }

    /// Whether all metrics were flat and nothing failed unexpectedly.
    pub(super) fn passed(&self) -> bool {
        self.problems == 0 && self.figures.iter().all(|row| row.flat)
    }

    pub(super) fn show(&self) -> String {
        let mut out = String::new();
        if let Some(origin) = &self.origin {
            let _ = writeln!(out, "Commit {}, {}, {}.", origin.commit, origin.date, origin.machine);
            if origin.noisy().is_some() {
                let _ = writeln!(out, "The machine was noisy: the CPU row says more of it than of Talon.");
            }
        }
        let _ = writeln!(
            out,
            "{:.1} minutes: {} calls, {} more died with their plugin in {} kills; {} reloads of the configuration, {} of a plugin; \
             {} events received, {} missed by the slow listener.",
            self.minutes,
            self.calls,
            self.died,
            self.kills,
            self.configuration_reloads,
            self.plugin_reloads,
            self.events,
            self.events_missed
        );
        for problem in &self.told {
            let _ = writeln!(out, "Must not be: {problem}");
        }
        let _ = writeln!(out, "Problems: {}.\n", self.problems);
        let rows = self.figures.iter().map(Row::cells);
        write_table(
            &mut out,
            &["what", "first half", "second half", "allowed", "slope an hour", "its error", "flat"],
            rows,
        );
        let _ = writeln!(
            out,
            "\nNot flat is what rises by more than {ERRORS} standard errors of its slope and of which the second half's median lies \
             above the first half's by more than is allowed."
        );
        out
    }
}

impl Row {
    fn cells(&self) -> [String; 7] {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let flat = if self.flat { "yes" } else { "**no**" }.to_owned();
        let Allowance { absolute, relative } = self.allowed;
        let Some(trend) = self.trend else {
            return [self.name, "", "", "", "", "", "too few samples"].map(str::to_owned);
        };
        let allowed = number(absolute + relative * trend.first.abs());
        [
            self.name.to_owned(),
            format!("{}{unit}", number(trend.first)),
            format!("{}{unit}", number(trend.second)),
            format!("+{allowed}"),
            format!("{}{unit}", number(trend.slope_per_hour)),
            number(trend.error_per_hour),
            flat,
        ]
    }
}
