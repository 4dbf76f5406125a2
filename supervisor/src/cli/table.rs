//! Tables for people: columns two spaces apart, no frames, so that `awk` and `cut` work on them too.

use std::fmt::Write as _;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::output::paint;

const GAP: &str = "  ";

/// One cell; its text may come from anybody and is made one harmless line when it is printed.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    text: String,
    style: Option<Style>,
}

impl Cell {
    pub(super) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style: Some(style) }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.to_string(), style: None }
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

    /// The whole table as text; `clean` makes a cell's text printable.
    pub(super) fn render(&self, color: bool, clean: &dyn Fn(&str) -> String) -> String {
        let mut lines: Vec<Vec<(String, Option<Style>)>> = Vec::with_capacity(self.rows.len() + 1);
        if !self.header.is_empty() {
            let bold = Style::new().bold();
            lines.push(self.header.iter().map(|title| ((*title).to_owned(), Some(bold))).collect());
        }
        for row in &self.rows {
            lines.push(row.iter().map(|cell| (clean(&cell.text), cell.style)).collect());
        }
        let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                lines.iter().filter_map(|line| line.get(column)).map(|(text, _)| text.width()).max()
            })
            .map(Option::unwrap_or_default)
            .collect();

        let mut text = String::new();
        for line in &lines {
            let mut pending = 0;
            for (column, (cell, style)) in line.iter().enumerate() {
                if column > 0 {
                    pending += GAP.len();
                }
                if !cell.is_empty() {
                    // Padding is written only before something, so that no line ends in spaces.
                    let _ = write!(text, "{:pending$}", "");
                    pending = 0;
                    text.push_str(&style.map_or_else(|| cell.clone(), |style| paint(color, style, cell)));
                }
                pending += widths[column] - cell.width();
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(table: &Table) -> String {
        table.render(false, &str::to_owned)
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
        assert_eq!(table.render(true, &str::to_owned), "\u{1b}[1ma\u{1b}[0m     b\nlong  b\n");
    }

    const BOLD: Style = Style::new().bold();

    #[test]
    fn cells_are_cleaned_before_they_are_measured() {
        let mut table = Table::new(&[]);
        table.row(vec!["a\nb".into(), "c".into()]);
        assert_eq!(table.render(false, &|text| text.replace('\n', "\\n")), "a\\nb  c\n");
    }
}
