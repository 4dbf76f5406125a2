//! What a client is told of a running call: MCP has numbers that grow, each with a message.

use talon_client::CallUpdate;
use talon_proto::host::{CallOutput, Progress};

/// Makes progress of a call's updates. A call that reports no progress of its own counts the lines that it puts out, and the
/// message is the last of them: two counts in one sequence would make no sense.
#[derive(Debug, Default)]
pub(crate) struct CallProgress {
    reports: bool,
    lines: u64,
}

impl CallProgress {
    /// The progress that an update says, if any.
    pub(crate) fn of(&mut self, update: CallUpdate<'_>) -> Option<Progress> {
        match update {
            CallUpdate::Progress(progress) => {
                self.reports = true;
                Some(progress.clone())
            }
            CallUpdate::Output(CallOutput { lines, left_out_lines, left_out_bytes: _ }) => {
                let new = u64::try_from(lines.len()).unwrap_or(u64::MAX).saturating_add(*left_out_lines);
                self.lines = self.lines.saturating_add(new);
                let message = lines.iter().rfind(|line| !line.trim().is_empty()).filter(|_| !self.reports)?;
                #[expect(clippy::cast_precision_loss, reason = "no call has as many lines")]
                let progress = self.lines as f64;
                Some(Progress { progress, total: None, message: message.clone() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-144
    #[test]
    fn lines_are_progress_until_the_call_reports_its_own() {
        let mut progress = CallProgress::default();
        let output = CallOutput {
            lines: vec!["a".into(), "b".into(), " ".into()],
            left_out_lines: 4,
            left_out_bytes: 9,
        };
        let told = progress.of(CallUpdate::Output(&output)).expect("it says something");
        assert_eq!((told.progress, told.message.as_str()), (7.0, "b"));
        let own = Progress { progress: 0.5, ..Progress::default() };
        assert_eq!(progress.of(CallUpdate::Progress(&own)), Some(own));
        assert_eq!(progress.of(CallUpdate::Output(&output)), None);
    }
}
