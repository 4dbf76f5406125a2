//! What is shown of a call while it runs: its progress and what it puts out, on stderr.

use std::io::IsTerminal as _;

use anstyle::Style;
use serde_json::json;
use talon_client::CallUpdate;
use talon_proto::host::CallOutput;
use talon_sanitize::{Raw, Sanitized, sanitized};

use crate::client::call_progress::CallProgressBar;
use crate::line::Line;
use crate::output::Output;

const DIM: Style = Style::new().dimmed();

/// Shows updates until it is dropped.
pub(crate) struct CallScreen<'o> {
    out: &'o mut Output,
    bar: CallProgressBar,
}

impl<'o> CallScreen<'o> {
    pub(crate) fn new(out: &'o mut Output) -> Self {
        Self { out, bar: CallProgressBar::new() }
    }

    pub(crate) fn show(&mut self, update: CallUpdate<'_>) {
        match update {
            // A bar is only for people.
            CallUpdate::Progress(progress) if !self.out.is_json() && std::io::stderr().is_terminal() => {
                self.bar.show(progress);
            }
            CallUpdate::Progress(_) => {}
            CallUpdate::Output(output) => {
                let Self { out, bar } = self;
                bar.suspend(|| print(output, out));
            }
        }
    }
}

fn print(output: &CallOutput, out: &mut Output) {
    let CallOutput { lines, left_out_lines, left_out_bytes } = output;
    if out.is_json() {
        for line in lines {
            out.err_json(&json!({ "output": line }));
        }
        if left_out(*left_out_lines, *left_out_bytes).is_some() {
            out.err_json(&json!({ "left_out_lines": left_out_lines, "left_out_bytes": left_out_bytes }));
        }
        return;
    }
    for line in lines {
        out.err_line(Line::default().and_text(Raw::from(line.as_str()).terminal_text()));
    }
    if let Some(words) = left_out(*left_out_lines, *left_out_bytes) {
        out.err_line(Line::styled(DIM, words));
    }
}

/// What was left out, in words; `None` if nothing was.
fn left_out(lines: u64, bytes: u64) -> Option<Sanitized> {
    match (lines, bytes) {
        (0, 0) => None,
        (0, bytes) => Some(sanitized!("… {} bytes of long lines left out", bytes)),
        (lines, _) => Some(sanitized!("… {} lines left out", lines)),
    }
}
