//! The tables of a run, as Markdown that is also readable in a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::document::{Document, GoalResult};
use crate::figures::Figure;
use crate::figures::suffix;
use crate::goals::{GOALS, Goal, MAX_TIMES_WORSE};
use crate::machine::NOISY;
use crate::neighbours::NEIGHBOURS;
use crate::samples::Spread;

/// The value of a goal that a run did not measure: if its row were left out, the goal would seem not to
/// exist.
pub const NOT_MEASURED: &str = "not measured";

/// From this interquartile range on, as a part of the median, the table marks a figure: if it varies by more
/// than a quarter, only its order of magnitude is certain.
pub const UNSTEADY: f64 = 0.25;

/// The table of goals alone, with the notes about the run.
#[must_use]
pub fn goals(document: &Document) -> String {
    let mut out = String::new();
    let origin = &document.origin;
    let _ = writeln!(out, "Commit {}, {}, {}.", origin.commit, origin.date, origin.machine);
    let minutes = origin.seconds as f64 / 60.0;
    let _ = writeln!(
        out,
        "{} run of {minutes:.1} minutes; medians of rounds in which all take turns, and between which values the middle half lies.",
        if origin.quick { "A short" } else { "A full" },
    );
    if let Some(suites) = origin.noisy() {
        let _ = writeln!(
            out,
            "\n**The machine was too noisy during {suites}:** the same work took times of which the middle half lay that part of \
             the median apart ({:.0} % is the most that figures are trusted at). Stop what else runs, and measure again.",
            NOISY * 100.0
        );
    }
    for note in &document.notes {
        let _ = writeln!(out, "\n{NOTE}{note}");
    }
    out.push('\n');
    write_table(&mut out, &GOALS_COLUMNS, GOALS.iter().map(|goal| goal_row(goal, document)));
    out
}

/// What a line of a note begins with.
pub(crate) const NOTE: &str = "Not measured: ";

/// The columns of the table of goals.
pub(crate) const GOALS_COLUMNS: [&str; 4] = ["what", "goal", "reached", "met"];

/// The row of a goal.
pub(crate) fn goal_row(goal: &Goal, document: &Document) -> [String; 4] {
    let (reached, met) = match document.goals.iter().find(|of| of.id == goal.id) {
        Some(of) => (goal_value(of), of.met.map_or("", yes_or_no)),
        None => (NOT_MEASURED.to_owned(), ""),
    };
    [goal.what.to_owned(), goal.target(), reached, met.to_owned()]
}

/// The table of the goals' ratios beside busy neighbours.
#[must_use]
pub fn loaded(document: &Document) -> String {
    let mut out = "## Beside busy neighbours\n\n".to_owned();
    let cores = &document.origin.neighbour_cores;
    if cores.is_empty() {
        out.push_str("Not measured: `make bench` and `make bench-loaded` do that.\n");
        return out;
    }
    let taken: Vec<String> =
        cores.iter().map(|(suite, cores)| format!("{} in {suite}", number(*cores))).collect();
    let _ = writeln!(
        out,
        "The ratios of the goals once more, while {NEIGHBOURS} processes burn CPU. Of the machine's cores these took {}. A ratio may \
         be at most {MAX_TIMES_WORSE:.2} times worse than its quiet value.\n",
        taken.join(", ")
    );
    let rows = GOALS.iter().filter(|goal| goal.is_ratio()).map(|goal| {
        let result = document.goals.iter().find(|of| of.id == goal.id);
        let busy = result.and_then(|of| of.loaded);
        let of = |value: Option<String>| value.unwrap_or_else(|| NOT_MEASURED.to_owned());
        [
            goal.what.to_owned(),
            of(result.map(goal_value)),
            of(busy.map(|busy| spread(busy.spread, &suffix(goal.unit)))),
            busy.and_then(|busy| busy.times_worse)
                .map_or_else(String::new, |worse| format!("{}×", number(worse))),
            busy.and_then(|busy| busy.met).map_or("", yes_or_no).to_owned(),
        ]
    });
    write_table(&mut out, &["what", "quiet", "beside them", "times worse", "met"], rows);
    out
}

fn yes_or_no(met: bool) -> &'static str {
    if met { "yes" } else { "**no**" }
}

/// Everything: the two tables of goals, and one table for each case.
#[must_use]
pub fn whole(document: &Document) -> String {
    let mut out = goals(document);
    out.push('\n');
    out.push_str(&loaded(document));
    let _ = writeln!(out, "\nBelow, `~` stands before what varied by more than {:.0} %.", UNSTEADY * 100.0);
    for (suite, cases) in by_suite(&document.figures) {
        let _ = write!(out, "\n## {suite}\n");
        for (case, figures) in cases {
            let _ = write!(out, "\n### {case}\n\n");
            case_table(&mut out, &figures);
        }
    }
    out
}

/// A goal's median and spread.
#[must_use]
pub fn goal_value(goal: &GoalResult) -> String {
    spread(goal.spread, &suffix(&goal.unit))
}

fn spread(spread: Spread, unit: &str) -> String {
    let Spread { median, low, high } = spread;
    format!("{}{unit} ({} to {})", number(median), number(low), number(high))
}

/// Rounded to three significant figures; more would not be accurate.
#[must_use]
pub fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        small if small >= 0.1 || small == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// The figures of a case.
type Cases<'d> = Vec<(&'d str, Vec<&'d Figure>)>;

/// In the order in which they were measured.
fn by_suite(figures: &[Figure]) -> Vec<(&str, Cases<'_>)> {
    let mut suites: Vec<(&str, Cases<'_>)> = Vec::new();
    for figure in figures {
        let (suite, case) = figure.key.case.split_once('/').unwrap_or((&figure.key.case, ""));
        let at = suites.iter().position(|(name, _)| *name == suite).unwrap_or_else(|| {
            suites.push((suite, Vec::new()));
            suites.len() - 1
        });
        let cases = &mut suites[at].1;
        match cases.iter_mut().find(|(name, _)| *name == case) {
            Some((_, figures)) => figures.push(figure),
            None => cases.push((case, vec![figure])),
        }
    }
    suites
}

/// A line for each contender, a column for each metric; after a figure its ratio to the yardstick of the
/// case.
fn case_table(out: &mut String, figures: &[&Figure]) {
    let mut metrics: Vec<&str> = Vec::new();
    let mut lines: Vec<(&str, BTreeMap<&str, &Figure>)> = Vec::new();
    for figure in figures {
        let (metric, contender) = (figure.key.metric.as_str(), figure.key.contender.as_str());
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
        match lines.iter_mut().find(|(name, _)| *name == contender) {
            Some((_, line)) => drop(line.insert(metric, figure)),
            None => lines.push((contender, BTreeMap::from([(metric, *figure)]))),
        }
    }
    let rows = lines.iter().map(|(contender, line)| {
        let cells = metrics
            .iter()
            .map(|metric| line.get(metric).map_or_else(String::new, |figure| cell(figure, figures)));
        std::iter::once((*contender).to_owned()).chain(cells).collect::<Vec<String>>()
    });
    let head: Vec<&str> = std::iter::once("").chain(metrics.iter().copied()).collect();
    write_table(out, &head, rows);
}

fn cell(figure: &Figure, figures: &[&Figure]) -> String {
    let Some(of) = figure.samples.spread() else { return String::new() };
    let unit = figure.unit.symbol();
    let space = if unit.is_empty() { "" } else { " " };
    let value = format!("{}{}{space}{unit}", unsteady(of), number(of.median));
    match ratios(figure, figures).and_then(|ratios| ratios.spread()) {
        Some(ratio) => format!("{value} ({}{}×)", unsteady(ratio), number(ratio.median)),
        None => value,
    }
}

/// The mark before a median whose rounds vary widely.
fn unsteady(of: Spread) -> &'static str {
    if of.relative_width() > UNSTEADY { "~" } else { "" }
}

/// A figure's ratios to its yardstick in each round; `None` if it has none or is the yardstick.
pub(crate) fn ratios<'f>(
    figure: &Figure,
    figures: impl IntoIterator<Item = &'f &'f Figure>,
) -> Option<crate::samples::Samples> {
    let yardstick = figure.yardstick.as_deref().filter(|yardstick| *yardstick != figure.key.contender)?;
    let theirs = figures.into_iter().find(|other| {
        other.key.case == figure.key.case
            && other.key.contender == yardstick
            && other.key.metric == figure.key.metric
    })?;
    let ratios = figure.samples.divided_by(&theirs.samples);
    // Compared with a yardstick of zero, any value is infinite.
    Some(ratios).filter(|ratios| !ratios.0.is_empty() && ratios.0.iter().all(|ratio| ratio.is_finite()))
}

/// Pads the columns, so that the table is readable without being rendered.
pub(crate) fn write_table<R: AsRef<[String]>>(
    out: &mut String,
    head: &[&str],
    rows: impl Iterator<Item = R>,
) {
    let rows: Vec<R> = rows.collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.as_ref().get(column)).map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(head[column].chars().count()).max(3)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        for (cell, width) in cells.zip(&widths) {
            let _ = write!(out, "| {cell:width$} ");
        }
        out.push_str("|\n");
    };
    line(&mut head.iter().copied());
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    line(&mut rules.iter().map(String::as_str));
    for row in &rows {
        line(&mut row.as_ref().iter().map(String::as_str));
    }
}
