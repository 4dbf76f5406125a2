//! What running calls put out, below their calls: dimmed, and not all of it.

use std::collections::HashMap;

use talon_proto::agent::{ToolResult, ToolStream};
use talon_sanitize::{Raw, sanitized};

use super::styles::DIM;
use crate::line::Line;

/// How many lines of a call are shown; the others are counted. Fits a terminal beside the rest of the turn.
const MAX_LINES: u64 = 20;
/// Bytes of a line that are shown: two lines of a terminal.
const LINE_BYTES: usize = 160;
/// Calls whose lines are counted at once, more than run at once; further ones are not shown.
const MAX_CALLS: usize = 64;

/// How much of each running call was shown.
#[derive(Debug, Default)]
pub(super) struct CallOutputs(HashMap<String, LineCounts>);

#[derive(Debug, Default, Clone, Copy)]
struct LineCounts {
    lines: u64,
    left_out: u64,
}

impl CallOutputs {
    /// The lines to show of this output.
    pub(super) fn lines(&mut self, output: &ToolStream) -> Vec<Line> {
        if self.0.len() >= MAX_CALLS && !self.0.contains_key(&output.call_id) {
            return Vec::new();
        }
        let shown = self.0.entry(output.call_id.clone()).or_default();
        shown.left_out += output.left_out_lines;
        let mut lines = Vec::new();
        for line in &output.lines {
            if shown.lines == MAX_LINES {
                shown.left_out += 1;
                continue;
            }
            shown.lines += 1;
            lines.push(Line::styled(
                DIM,
                sanitized!("  │ {}", Raw::from(line.as_str()).line_within(LINE_BYTES)),
            ));
        }
        lines
    }

    /// Forgets a call that ended, and says what was not shown of it.
    pub(super) fn finish(&mut self, result: &ToolResult) -> Option<Line> {
        let LineCounts { left_out, .. } = self.0.remove(&result.call_id)?;
        (left_out > 0).then(|| Line::styled(DIM, sanitized!("  │ … {} lines are not shown", left_out)))
    }
}
