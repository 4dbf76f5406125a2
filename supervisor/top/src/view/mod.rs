//! Renders the model. Nothing here depends on a terminal: everything is drawn into a buffer.
//!
//! All untrusted text is `Sanitized` when it gets here, so no plugin can draw on the terminal: control
//! characters and characters that change the text direction are replaced by visible marks.

mod columns;
mod detail;
mod head;
mod help;
mod plugins;
pub(crate) mod theme;
pub(crate) mod units;
mod wrap;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use self::theme::Theme;
use crate::model::Model;

/// The height of the head.
const HEAD_LINES: u16 = 3;
/// From this height on the table keeps this share of the screen while the details are open.
const TALL: u16 = 30;
const TABLE_PERCENT: u16 = 45;
/// The height of the table on lower screens: its title, and the plugin with its neighbours.
const FEW_LINES: u16 = 5;

/// Draws the whole screen.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model, theme: Theme) {
    let area = frame.area();
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(HEAD_LINES), Constraint::Fill(1), Constraint::Length(1)])
            .areas(area);
    head::draw(frame, head, model, theme);
    body_of(frame, body, model, theme);
    help::foot(frame, foot, model, theme);
    if model.help {
        help::draw(frame, area, theme);
    }
}

fn body_of(frame: &mut Frame<'_>, area: Rect, model: &Model, theme: Theme) {
    if !model.open || model.current().is_none() {
        plugins::draw(frame, area, model, theme);
        return;
    }
    // Not higher than its rows need.
    let rows = u16::try_from(model.shown().len()).unwrap_or(u16::MAX).saturating_add(1);
    let most =
        if area.height >= TALL - HEAD_LINES - 1 { area.height * TABLE_PERCENT / 100 } else { FEW_LINES };
    let table = Constraint::Length(rows.min(most));
    let [table, detail] = Layout::vertical([table, Constraint::Fill(1)]).areas(area);
    plugins::draw(frame, table, model, theme);
    detail::draw(frame, detail, model, theme);
}

/// Title and rows of the table as `--once` prints it, for a page of that width.
pub(crate) use plugins::as_text;

#[cfg(test)]
#[path = "../view_tests.rs"]
pub(crate) mod tests;
