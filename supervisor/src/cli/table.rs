//! Tables for people: columns two spaces apart, no frames, so that `awk` and `cut` work on them too.

use std::fmt::Write as _;

use anstyle::Style;
use talon_sanitize::{Raw, Sanitized};
use unicode_width::UnicodeWidthStr;

use super::line::paint;

const GAP: &str = "  ";

/// One cell; its text may come from anybody, so it is made one inert line right here.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    text: Sanitized,
    style: Option<Style>,
}

impl Cell {
    pub(super) fn styled<'t>(text: impl Into<Raw<'t>>, style: Style) -> Self {
        Self { text: text.into().line(), style: Some(style) }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: Raw::from(text.to_string()).line(), style: None }
    }
}

/// Rows below a header.
#[derive(Debug, Default)]
pub(super) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these column titles; none makes a table without a title line.
    pub(super) fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The whole table as text.
    pub(super) fn render(&self, color: bool) -> String {
        let mut lines: Vec<Vec<Cell>> = Vec::with_capacity(self.rows.len() + 1);
        if !self.header.is_empty() {
            let title = |title: &&'static str| Cell::styled(*title, Style::new().bold());
            lines.push(self.header.iter().map(title).collect());
        }
        lines.extend(self.rows.iter().cloned());
        let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.text.width()).max()
            })
            .map(Option::unwrap_or_default)
            .collect();

        let mut text = String::new();
        for line in &lines {
            let plain = row(line, &widths, false);
            let inert = Raw::from(&plain).text();
            // Cells that make control syntax together lose their colours.
            text.push_str(&if inert == plain { row(line, &widths, color) } else { inert.into_string() });
            text.push('\n');
        }
        text
    }
}

fn row(cells: &[Cell], widths: &[usize], color: bool) -> String {
    let mut text = String::new();
    let mut pending = 0;
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if column > 0 {
            pending += GAP.len();
        }
        if !cell.text.is_empty() {
            // Padding is written only before something, so that no line ends in spaces.
            let _ = write!(text, "{:pending$}", "");
            pending = 0;
            text.push_str(&paint(cell.style.filter(|_| color), &cell.text));
        }
        pending += width - cell.text.width();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(table: &Table) -> String {
        table.render(false)
    }

    #[test]
    fn columns_line_up_by_display_width_and_no_line_ends_in_spaces() {
        let mut table = Table::new(&["PLUGIN", "STATE", "REASON"]);
        table.row(vec!["hello".into(), "ready".into(), "".into()]);
        table.row(vec!["日本".into(), "".into(), "why".into()]);
        assert_eq!(plain(&table), "PLUGIN  STATE  REASON\nhello   ready\n日本           why\n");
    }

    #[test]
    fn colour_does_not_change_the_layout() {
        let mut table = Table::new(&[]);
        table.row(vec![Cell::styled("a", BOLD), "b".into()]);
        table.row(vec!["long".into(), "b".into()]);
        assert_eq!(plain(&table), "a     b\nlong  b\n");
        assert_eq!(table.render(true), "\u{1b}[1ma\u{1b}[0m     b\nlong  b\n");
    }

    const BOLD: Style = Style::new().bold();

    #[test]
    fn cells_are_cleaned_before_they_are_measured() {
        let mut table = Table::new(&[]);
        table.row(vec!["a\nb".into(), "c".into()]);
        table.row(vec!["\u{1b}[2J".into(), "<think>".into()]);
        assert_eq!(plain(&table), "a\\nb  c\n␛[2J  <·think>\n");
    }

    #[test]
    fn cells_of_a_row_make_no_token_together() {
        for color in [false, true] {
            let mut table = Table::new(&[]);
            table.row(vec![Cell::styled("<", BOLD), "tool_call>".into()]);
            let text = table.render(color);
            let plain = text.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
            assert!(talon_sanitize::Sanitizer::default().is_clean(&plain), "{plain:?}");
        }
    }
}
