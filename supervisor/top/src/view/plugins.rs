//! The table of plugins.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr as _;

use super::columns::{Column, GAP, fitting};
use super::theme::Theme;
use super::wrap::cut;
use crate::model::{ConnectionState, Model};
use crate::reading::Plugin;

/// The column for the cursor.
const CURSOR: &str = "▸";

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: Theme) {
    let shown = model.shown();
    let (name, columns) = fitting(area.width.saturating_sub(1));
    let mut lines = vec![title(model, name, &columns, theme)];
    let room = usize::from(area.height.saturating_sub(1));
    let at = model.current().map_or(0, |(at, _)| at);
    for (number, plugin) in shown.iter().enumerate().skip(first_row(at, shown.len(), room)).take(room) {
        let selected = model.current().is_some() && number == at;
        lines.push(row(model, plugin, name, &columns, selected, theme));
    }
    if shown.is_empty() {
        lines.push(Line::styled(nothing(model), theme.dim()));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// The first row to draw so that the cursor is visible, centred if there are more rows than fit.
fn first_row(at: usize, rows: usize, room: usize) -> usize {
    at.saturating_sub(room / 2).min(rows.saturating_sub(room))
}

fn nothing(model: &Model) -> &'static str {
    match (&model.reading, &model.connection) {
        (Some(reading), _) if reading.plugins.is_empty() => {
            " no plugins: put an executable into the plugin directory, or name one under plugins.tools.plugins"
        }
        (Some(_), _) => " no plugin has that in its name or state: Esc shows all",
        (None, ConnectionState::Gone(_)) => " nothing was read yet",
        (None, _) => " asking the supervisor …",
    }
}

fn title(model: &Model, name: u16, columns: &[&Column], theme: Theme) -> Line<'static> {
    let sorted = |by| model.sort_key == by;
    let mark = |title: &str| format!("{title}{}", if model.reversed { "▴" } else { "▾" });
    let first = if sorted(crate::order::SortKey::Name) { mark("PLUGIN") } else { "PLUGIN".to_owned() };
    let mut spans = vec![Span::raw(" "), Span::styled(pad(&first, name, true), theme.title())];
    for column in columns {
        // In a full column the marker takes the gap before it.
        let marked = column.by.is_some_and(sorted);
        let text = if marked { mark(column.title) } else { column.title.to_owned() };
        let text = if column.is_text() {
            format!("{}{}", " ".repeat(GAP.into()), pad(&text, column.width, true))
        } else {
            pad(&text, column.width + GAP, false)
        };
        spans.push(Span::styled(text, theme.title()));
    }
    Line::from(spans)
}

fn row(
    model: &Model,
    plugin: &Plugin,
    name: u16,
    columns: &[&Column],
    selected: bool,
    theme: Theme,
) -> Line<'static> {
    let rates = model.rates.of(&plugin.name);
    // The selected row has one style: reversed colours would look patchy, and the words carry the meaning.
    let style = |style: Style| if selected { theme.selected() } else { style };
    let mut spans = vec![
        Span::styled(if selected { CURSOR } else { " " }, style(Style::new())),
        Span::styled(pad(&cut(&plugin.name, name.into()), name, true), style(Style::new())),
    ];
    for column in columns {
        let (text, own) = column.cell(plugin, &rates, theme);
        spans.push(Span::styled(" ".repeat(GAP.into()), style(Style::new())));
        spans.push(Span::styled(pad(&text, column.width, column.is_text()), style(own)));
    }
    Line::from(spans)
}

fn pad(text: &str, width: u16, left: bool) -> String {
    let text = cut(text, width.into());
    let space = " ".repeat(usize::from(width).saturating_sub(text.width()));
    if left { text + &space } else { space + &text }
}

/// The table as lines of text, with every plugin.
pub(crate) fn as_text(model: &Model, width: u16) -> Vec<String> {
    let theme = Theme { color: false };
    let (name, columns) = fitting(width);
    let rows = model.shown();
    let rows = rows.iter().map(|plugin| row(model, plugin, name, &columns, false, theme));
    let line = |line: Line<'_>| -> String {
        let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
        text.strip_prefix(' ').unwrap_or(&text).trim_end().to_owned()
    };
    std::iter::once(title(model, name, &columns, theme)).chain(rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_is_always_among_the_rows() {
        for rows in 0..30 {
            for room in 1..10 {
                for at in 0..rows {
                    let first = first_row(at, rows, room);
                    assert!((first..first + room).contains(&at), "{at} of {rows} in {room}");
                    assert!(first + room <= rows.max(room), "no empty row while there are more");
                }
            }
        }
    }
}
