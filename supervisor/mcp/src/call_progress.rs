//! What a client is told of a running call: MCP has numbers that grow, each with a message.

use talon_client::CallUpdate;
use talon_proto::host::{CallOutput, Progress};

/// Makes progress of a call's updates: either the numbers that it reports, or a count of the lines that it puts out, whichever comes
/// first, since MCP's numbers have to grow. Beside a count of lines, what the call reports is a line more.
#[derive(Debug, Default)]
pub(crate) struct CallProgress {
    reports: bool,
    counts_lines: bool,
    lines: u64,
}

impl CallProgress {
    /// The progress that an update says, if any.
    pub(crate) fn of(&mut self, update: CallUpdate<'_>) -> Option<Progress> {
        match update {
            CallUpdate::Progress(progress) if self.counts_lines => {
                self.lines = self.lines.saturating_add(1);
                Some(self.line(&progress.message))
            }
            CallUpdate::Progress(progress) => {
                self.reports = true;
                Some(progress.clone())
            }
            CallUpdate::Output(CallOutput { lines, left_out_lines, left_out_bytes: _ }) => {
                let new = u64::try_from(lines.len()).unwrap_or(u64::MAX).saturating_add(*left_out_lines);
                self.lines = self.lines.saturating_add(new);
                let message = lines.iter().rfind(|line| !line.trim().is_empty()).filter(|_| !self.reports)?;
                self.counts_lines = true;
                Some(self.line(message))
            }
        }
    }

    fn line(&self, message: &str) -> Progress {
        #[expect(clippy::cast_precision_loss, reason = "no call has as many lines")]
        let progress = self.lines as f64;
        Progress { progress, total: None, message: message.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: EXT-144
    #[test]
    fn lines_are_progress_unless_the_call_reported_its_own_before() {
        let mut progress = CallProgress::default();
        let output = CallOutput {
            lines: vec!["a".into(), "b".into(), " ".into()],
            left_out_lines: 4,
            left_out_bytes: 9,
        };
        let told = progress.of(CallUpdate::Output(&output)).expect("it says something");
        assert_eq!((told.progress, told.message.as_str()), (7.0, "b"));
        // The numbers grow, whatever the call reports.
        let own = Progress { progress: 0.5, message: "half".into(), ..Progress::default() };
        let told = progress.of(CallUpdate::Progress(&own)).expect("it says something");
        assert_eq!((told.progress, told.message.as_str()), (8.0, "half"));
        let told = progress.of(CallUpdate::Output(&output)).expect("it says something");
        assert_eq!(told.progress, 15.0);

        let mut progress = CallProgress::default();
        assert_eq!(progress.of(CallUpdate::Progress(&own)), Some(own.clone()));
        assert_eq!(progress.of(CallUpdate::Output(&output)), None);
        assert_eq!(progress.of(CallUpdate::Progress(&own)), Some(own));
    }
}
