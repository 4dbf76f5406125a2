//! The columns of the plugin table, and the selection of those that fit.

use ratatui::style::Style;

use super::theme::Theme;
use super::units::{NONE, bytes, count, micros, rate};
use crate::order::{SortKey, badness};
use crate::rates::Rates;
use crate::reading::Plugin;

/// Columns between two cells.
pub(crate) const GAP: u16 = 1;
/// The narrowest name column.
const MIN_NAME: u16 = 12;
/// The widest name column; on wider screens the rest stays empty, to keep names close to their numbers.
const MAX_NAME: u16 = 40;

/// One column other than the name.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) width: u16,
    /// Columns with a smaller rank are also shown on narrow screens.
    rank: u8,
    /// The sort key that this column's title is marked for.
    pub(crate) by: Option<SortKey>,
    cell: fn(&Plugin, &Rates) -> String,
    style: fn(&Plugin, Theme) -> Style,
}

const fn column(
    title: &'static str,
    width: u16,
    rank: u8,
    by: Option<SortKey>,
    cell: fn(&Plugin, &Rates) -> String,
) -> Column {
    Column { title, width, rank, by, cell, style: |_, _| Style::new() }
}

/// In order of appearance. Of columns with equal rank the first is preferred.
static COLUMNS: [Column; 15] = [
    Column { style: state_style, ..column("STATE", 11, 0, Some(SortKey::Severity), state) },
    column("UP", 3, 9, None, |plugin, _| format!("{}/{}", plugin.ready(), plugin.instances.len())),
    column("CALLS/S", 7, 0, Some(SortKey::Calls), |_, rates| rate(rates.calls)),
    Column {
        style: |plugin, theme| if plugin.counters.errors > 0 { theme.warning() } else { Style::new() },
        ..column("ERR/S", 5, 1, Some(SortKey::Errors), |_, rates| rate(rates.errors))
    },
    column("P50", 6, 8, None, |plugin, _| micros(plugin.counters.p50_us)),
    column("P99", 6, 2, Some(SortKey::Latency), |plugin, _| micros(plugin.counters.p99_us)),
    column("FLIGHT", 6, 3, Some(SortKey::InFlight), |plugin, _| plugin.in_flight.to_string()),
    column("QUEUE", 5, 6, None, |plugin, _| plugin.waiting.to_string()),
    Column {
        style: |plugin, theme| if plugin.breaker == "closed" { theme.dim() } else { theme.bad() },
        ..column("BREAKER", 9, 10, None, |plugin, _| or_none(&plugin.breaker))
    },
    column("DIED", 4, 5, None, |plugin, _| count(plugin.deaths())),
    column("CPU%", 5, 4, Some(SortKey::Cpu), |_, rates| rate(rates.cpu)),
    column("MEMORY", 6, 4, Some(SortKey::Memory), |plugin, _| {
        bytes(plugin.usage().map(|usage| usage.memory_bytes))
    }),
    column("PIDS", 4, 12, None, |plugin, _| {
        plugin.usage().map_or(NONE.to_owned(), |usage| count(usage.processes.into()))
    }),
    column("LOG/S", 5, 11, Some(SortKey::LogLines), |_, rates| rate(rates.log_lines)),
    Column {
        style: |plugin, theme| {
            if plugin.counters.log_lines_dropped > 0 { theme.warning() } else { Style::new() }
        },
        ..column("DROPPED", 7, 13, None, |plugin, _| count(plugin.counters.log_lines_dropped))
    },
];

impl Column {
    pub(crate) fn cell(&self, plugin: &Plugin, rates: &Rates, theme: Theme) -> (String, Style) {
        ((self.cell)(plugin, rates), (self.style)(plugin, theme))
    }

    /// Text is left-aligned, numbers are right-aligned.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.title, "STATE" | "BREAKER")
    }
}

/// The columns that fit into a width, and the width of the names.
pub(crate) fn fitting(width: u16) -> (u16, Vec<&'static Column>) {
    let mut by_rank: Vec<&'static Column> = COLUMNS.iter().collect();
    by_rank.sort_by_key(|column| column.rank);
    let mut left = width.saturating_sub(MIN_NAME);
    let mut titles = Vec::new();
    for column in by_rank {
        let needed = column.width + GAP;
        // Do not try narrower columns of a higher rank: the selection should follow the ranks alone.
        if needed > left {
            break;
        }
        left -= needed;
        titles.push(column.title);
    }
    let name = width.min(MIN_NAME + left).min(MAX_NAME);
    (name, COLUMNS.iter().filter(|column| titles.contains(&column.title)).collect())
}

/// The state as a word, or the problem of a plugin that is ready anyway.
fn state(plugin: &Plugin, _: &Rates) -> String {
    if plugin.state == "ready" && plugin.quarantined {
        return "quarantined".to_owned();
    }
    if plugin.state == "ready" && plugin.breaker == "open" {
        return "ready, open".to_owned();
    }
    or_none(&plugin.state)
}

fn state_style(plugin: &Plugin, theme: Theme) -> Style {
    match badness(plugin) {
        2 => theme.bad(),
        1 => theme.warning(),
        _ => theme.state(&plugin.state),
    }
}

fn or_none(text: &str) -> String {
    if text.is_empty() { NONE.to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wider_screens_have_all_that_narrower_ones_have() {
        let mut before: Vec<&str> = Vec::new();
        for width in 0..200 {
            let (name, columns) = fitting(width);
            let used: u16 = columns.iter().map(|column| column.width + GAP).sum();
            assert!(name + used <= width, "{width}");
            let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
            assert!(before.iter().all(|title| titles.contains(title)), "{width}: {before:?} {titles:?}");
            before = titles;
        }
        assert_eq!(before.len(), COLUMNS.len());
    }

    #[test]
    fn eighty_columns_say_what_matters() {
        let (name, columns) = fitting(79);
        let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
        assert_eq!(titles, ["STATE", "CALLS/S", "ERR/S", "P99", "FLIGHT", "QUEUE", "DIED", "CPU%", "MEMORY"]);
        assert!(name >= MIN_NAME, "{name}");
    }
}
