//! The last row of the terminal, apart from the rows above, which scroll by themselves.

use std::io::{Write as _, stderr};

use rustix::termios::tcgetwinsize;
use talon_sanitize::TerminalText;

/// With fewer rows what scrolls would be too little to read.
const MIN_ROWS: u16 = 6;
const SAVE_CURSOR: &str = "\u{1b}7";
const RESTORE_CURSOR: &str = "\u{1b}8";
const ALL_ROWS: &str = "\u{1b}[r";
const CLEAR_ROW: &str = "\u{1b}[2K";

/// The last row, reserved. Dropping it gives it back, empty.
pub(crate) struct BottomRow {
    rows: u16,
}

impl BottomRow {
    /// Reserves it; `None` where stderr is no terminal, or one of few rows. The cursor must be at the beginning of a row.
    pub(crate) fn reserve() -> Option<Self> {
        let (rows, _) = size()?;
        // The cursor may be in the last row: a line break moves what is there up.
        write(&format!("\n\u{1b}[A{}", scrolling(rows)));
        Some(Self { rows })
    }

    /// The columns for a text: the last one stays free, where terminals wrap.
    pub(crate) fn columns() -> usize {
        size().map_or(0, |(_, columns)| usize::from(columns).saturating_sub(1))
    }

    /// Writes the row; the cursor stays where it is.
    pub(crate) fn draw(&mut self, text: &TerminalText) {
        let Some((rows, _)) = size() else { return };
        if rows != self.rows {
            self.rows = rows;
            write(&scrolling(rows));
        }
        write(&format!("{SAVE_CURSOR}\u{1b}[{rows};1H{CLEAR_ROW}{}{RESTORE_CURSOR}", &**text));
    }
}

impl Drop for BottomRow {
    fn drop(&mut self) {
        let rows = self.rows;
        write(&format!("{SAVE_CURSOR}{ALL_ROWS}\u{1b}[{rows};1H{CLEAR_ROW}{RESTORE_CURSOR}"));
    }
}

/// All rows but the last scroll.
fn scrolling(rows: u16) -> String {
    format!("{SAVE_CURSOR}\u{1b}[1;{}r{RESTORE_CURSOR}", rows - 1)
}

fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(stderr()).ok()?;
    (size.ws_row >= MIN_ROWS).then_some((size.ws_row, size.ws_col))
}

/// Errors are ignored, as there is nowhere to report them.
fn write(sequence: &str) {
    let _ = stderr().lock().write_all(sequence.as_bytes());
}
