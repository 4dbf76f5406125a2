//! The last line, and the help overlay.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::theme::Theme;
use crate::keys::HELP;
use crate::model::Model;

/// The width of the keys' column.
const KEYS: u16 = 11;

pub(super) fn foot(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: Theme) {
    let line = if model.typing || !model.filter.is_empty() {
        let cursor = if model.typing { "▏" } else { "" };
        let hint = if model.typing { "  Enter keeps it, Esc ends it" } else { "  / changes it, Esc ends it" };
        Line::from(vec![
            Span::styled(format!(" filter: {}{cursor}", model.filter), theme.title()),
            Span::styled(hint, theme.dim()),
        ])
    } else {
        let mut spans = vec![Span::raw(" ")];
        let whole = if model.open { ("Esc", "back") } else { ("Enter", "whole") };
        let sort = format!("sort: {}", model.sort_key.name());
        for (key, does) in
            [("q", "quit"), ("?", "help"), whole, ("/", "filter"), ("s", sort.as_str()), ("p", "pause")]
        {
            spans.push(Span::styled(key, theme.title()));
            spans.push(Span::raw(format!(" {does}  ")));
        }
        Line::from(spans)
    };
    frame.render_widget(Paragraph::new(line), area);
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let widest = HELP.iter().map(|(_, does)| does.chars().count()).max().unwrap_or_default();
    let width = (u16::try_from(widest).unwrap_or(u16::MAX)).saturating_add(KEYS + 5).min(area.width);
    let height = (u16::try_from(HELP.len()).unwrap_or(u16::MAX)).saturating_add(2).min(area.height);
    let at =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    let lines: Vec<Line<'_>> = HELP
        .iter()
        .map(|(keys, does)| {
            let keys = format!(" {keys:<width$}", width = usize::from(KEYS));
            Line::from(vec![Span::styled(keys, theme.title()), Span::raw(*does)])
        })
        .collect();
    frame.render_widget(Clear, at);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), at);
}
