//! Tables for people: columns separated by two spaces and without frames, so that `awk` and `cut` work on
//! them too.

use std::fmt::Write as _;

use anstyle::Style;
use talon_sanitize::{Raw, Sanitized};
use unicode_width::UnicodeWidthStr;

use crate::line::paint;
use crate::wrap::wrapped_on;

const GAP: &str = "  ";
/// The width down to which a column is shortened: two or three words, by which a person recognizes a title.
const MIN_SHORTENED: usize = 16;
/// The width of the ellipsis that stands for what was cut off.
const ELLIPSIS_WIDTH: usize = 1;

/// One cell; its text is untrusted, so it is sanitized to one line here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: Sanitized,
    style: Option<Style>,
}

impl Cell {
    pub(crate) fn styled<'t>(text: impl Into<Raw<'t>>, style: Style) -> Self {
        Self { text: text.into().line(), style: Some(style) }
    }

    /// Cuts the text to this display width, with an ellipsis as its last column.
    fn shorten(&mut self, columns: usize) {
        if self.text.width() <= columns {
            return;
        }
        let mut end = 0;
        for (at, letter) in self.text.char_indices() {
            end = at;
            if self.text[..at + letter.len_utf8()].width() + ELLIPSIS_WIDTH > columns {
                break;
            }
        }
        self.text = std::mem::take(&mut self.text).cut(end);
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: Raw::from(text.to_string()).line(), style: None }
    }
}

/// A column of a table that may be too wide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    /// Columns with a larger rank are omitted first; rank 0 is never omitted.
    rank: u8,
    /// Numbers are right-aligned.
    number: bool,
    /// Whether its cells may be shortened, before any column is omitted.
    shortens: bool,
}

impl Column {
    pub(crate) const fn text(title: &'static str, rank: u8) -> Self {
        Self { title, rank, number: false, shortens: false }
    }

    /// A column of prose, such as titles; never of ids and other words that are copied.
    pub(crate) const fn prose(title: &'static str, rank: u8) -> Self {
        Self { title, rank, number: false, shortens: true }
    }

    pub(crate) const fn number(title: &'static str, rank: u8) -> Self {
        Self { title, rank, number: true, shortens: false }
    }
}

/// Rows below a header.
#[derive(Debug, Default)]
pub(crate) struct Table {
    header: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table with these column titles; without titles there is no header line.
    pub(crate) fn new(header: &[&'static str]) -> Self {
        Self { header: header.iter().map(|title| Column::text(title, 0)).collect(), rows: Vec::new() }
    }

    /// A table with columns that may be omitted.
    pub(crate) fn of(columns: &[Column]) -> Self {
        Self { header: columns.to_vec(), rows: Vec::new() }
    }

    /// Shortens prose, and if that is not enough omits columns, until the table fits the page or only rank 0 is left.
    /// Other cells are never cut.
    pub(crate) fn fit(&mut self, page_columns: usize) {
        loop {
            let widths = widths(&self.lines());
            let wide = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
            let excess = wide.saturating_sub(page_columns);
            let spare = self.header.iter().zip(&widths).filter(|(column, _)| column.shortens);
            let spare: usize = spare.map(|(_, width)| width.saturating_sub(MIN_SHORTENED)).sum();
            let last = self.header.iter().enumerate().max_by_key(|(_, column)| column.rank);
            match last.map(|(at, column)| (at, column.rank)) {
                Some((at, 1..)) if excess > spare => {
                    self.header.remove(at);
                    self.rows.iter_mut().filter(|row| at < row.len()).for_each(|row| drop(row.remove(at)));
                }
                _ => return self.shorten(&widths, excess),
            }
        }
    }

    /// Takes this many columns from the prose, from the right.
    fn shorten(&mut self, widths: &[usize], mut excess: usize) {
        for (at, width) in widths.iter().enumerate().rev() {
            if self.header.get(at).is_some_and(|column| column.shortens) {
                let less = excess.min(width.saturating_sub(MIN_SHORTENED));
                excess -= less;
                self.rows
                    .iter_mut()
                    .filter_map(|row| row.get_mut(at))
                    .for_each(|cell| cell.shorten(width - less));
            }
        }
    }

    /// All lines, including the header.
    fn lines(&self) -> Vec<Vec<Cell>> {
        let mut lines: Vec<Vec<Cell>> = Vec::with_capacity(self.rows.len() + 1);
        if !self.header.is_empty() {
            let title = |column: &Column| Cell::styled(column.title, Style::new().bold());
            lines.push(self.header.iter().map(title).collect());
        }
        lines.extend(self.rows.iter().cloned());
        lines
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table with values broken at spaces where they are wider than the page, if it is one of facts: names with their
    /// values, without a header. Where a name leaves no room beside it, the value stands below it.
    pub(crate) fn with_wrapped_facts(&self, page_columns: usize) -> Self {
        let is_of_facts = self.header.is_empty() && self.rows.iter().all(|row| row.len() <= 2);
        let widths = widths(&self.rows);
        let used = widths.first().map_or(0, |name| name + GAP.len());
        let wide = used + widths.get(1).copied().unwrap_or_default();
        if !is_of_facts || wide <= page_columns {
            return Self { header: self.header.clone(), rows: self.rows.clone() };
        }
        let is_beside = page_columns >= used + MIN_SHORTENED;
        let taken = if is_beside { used } else { GAP.len() };
        let rows = self.rows.iter().flat_map(|row| {
            let [name, value] = &row[..] else { return vec![row.clone()] };
            let mut name = Some(name.clone()).filter(|name| is_beside || !name.text.is_empty());
            let above = if is_beside { None } else { name.take().map(|name| vec![name]) };
            let part = |text: String| {
                let style = value.style;
                match is_beside {
                    true => {
                        vec![name.take().unwrap_or_default(), Cell { text: Raw::from(text).line(), style }]
                    }
                    false => vec![Cell { text: Raw::from(format!("{GAP}{text}")).line(), style }],
                }
            };
            above
                .into_iter()
                .chain(wrapped_on(page_columns, &value.text, taken).into_iter().map(part))
                .collect()
        });
        Self { header: Vec::new(), rows: rows.collect() }
    }

    /// The whole table as text.
    pub(crate) fn render(&self, color: bool) -> String {
        let lines = self.lines();
        let widths = widths(&lines);
        let right: Vec<bool> = self.header.iter().map(|column| column.number).collect();
        let mut text = String::new();
        for line in &lines {
            let plain = row(line, &widths, &right, false);
            let sanitized = Raw::from(&plain).text();
            // Cells that form control syntax together lose their colours.
            text.push_str(&if sanitized == plain {
                row(line, &widths, &right, color)
            } else {
                sanitized.into_string()
            });
            text.push('\n');
        }
        text
    }
}

/// The width of each column.
fn widths(lines: &[Vec<Cell>]) -> Vec<usize> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    (0..columns)
        .map(|column| lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.text.width()).max())
        .map(Option::unwrap_or_default)
        .collect()
}

fn row(cells: &[Cell], widths: &[usize], right: &[bool], color: bool) -> String {
    let mut text = String::new();
    let mut pending = 0;
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if column > 0 {
            pending += GAP.len();
        }
        let space = width - cell.text.width();
        let right = right.get(column).is_some_and(|right| *right);
        if right {
            pending += space;
        }
        if !cell.text.is_empty() {
            // Padding is only written before further text, so that no line ends in spaces.
            let _ = write!(text, "{:pending$}", "");
            pending = 0;
            text.push_str(&paint(cell.style.filter(|_| color), &cell.text));
        }
        if !right {
            pending += space;
        }
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

    #[test]
    fn numbers_end_at_the_right_and_what_matters_least_goes_first() {
        let columns = [Column::text("PLUGIN", 0), Column::number("CALLS", 2), Column::number("PID", 1)];
        let mut table = Table::of(&columns);
        table.row(vec!["hello".into(), 7.into(), 4301.into()]);
        table.fit(20);
        assert_eq!(plain(&table), "PLUGIN  CALLS   PID\nhello       7  4301\n");
        table.fit(15);
        assert_eq!(plain(&table), "PLUGIN   PID\nhello   4301\n");
        table.fit(1);
        assert_eq!(plain(&table), "PLUGIN\nhello\n", "what has to be there is there");
    }

    // Promises: CLI-66
    #[test]
    fn prose_is_shortened_before_a_column_is_omitted() {
        let mut table =
            Table::of(&[Column::text("ID", 0), Column::prose("TITLE", 0), Column::number("COST", 1)]);
        table.row(vec!["01K0".into(), "日本語 and a title of many words".into(), "$1".into()]);
        table.fit(36);
        assert_eq!(
            plain(&table),
            "ID    TITLE                     COST\n01K0  日本語 and a title of m…    $1\n"
        );
        table.fit(30);
        assert_eq!(plain(&table), "ID    TITLE               COST\n01K0  日本語 and a titl…    $1\n");
        table.fit(24);
        assert_eq!(plain(&table), "ID    TITLE\n01K0  日本語 and a titl…\n");
        table.fit(1);
        assert_eq!(plain(&table), "ID    TITLE\n01K0  日本語 and a ti…\n", "what has to be there is there");
    }

    const BOLD: Style = Style::new().bold();

    // Promises: CLI-12
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

    // Promises: CLI-66
    #[test]
    fn facts_break_between_words_and_stand_below_their_names_in_narrow_windows() {
        let mut table = Table::new(&[]);
        table.row(vec!["supervisor".into(), "talon 0.1.0, pid 7".into()]);
        table.row(vec!["".into(), "and more words".into()]);
        let shown = |columns| table.with_wrapped_facts(columns).render(false);
        assert_eq!(shown(80), "supervisor  talon 0.1.0, pid 7\n            and more words\n");
        assert_eq!(shown(29), "supervisor  talon 0.1.0, pid\n            7\n            and more words\n");
        assert_eq!(shown(20), "supervisor\n  talon 0.1.0, pid 7\n  and more words\n");
        // Tables with columns have their own way to fit.
        let mut columns = Table::new(&["A", "B"]);
        columns.row(vec!["a".into(), "long words that do not fit".into()]);
        assert_eq!(columns.with_wrapped_facts(10).render(false), columns.render(false));
    }
}
