//! The progress bar of a call, on stderr if that is a terminal.

use talon_proto::host::Progress;

use crate::line::sanitized_line;
use crate::transient_bar::TransientBar;

/// Resolution of the bar; the plugin's amounts have any unit and may be fractions.
const STEPS: u64 = 1000;
/// The longest message to show, in characters: about one line of a terminal.
const MAX_SHOWN_CHARS: usize = 60;

/// Appears with the first progress report and disappears when dropped, so that the answer starts on a fresh
/// line.
pub(crate) struct CallProgressBar(Option<TransientBar>);

impl CallProgressBar {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    /// Prints something in place of the bar.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    pub(crate) fn show(&mut self, progress: &Progress) {
        let template = match progress.total {
            Some(_) => "[{bar:20}] {percent}% {msg}",
            None => "{spinner} {prefix} {msg}",
        };
        let bar = self.0.get_or_insert_with(|| TransientBar::new(Some(STEPS), template));
        bar.set_template(template);
        bar.set_prefix(progress.progress.to_string().chars().take(MAX_SHOWN_CHARS).collect::<String>());
        bar.set_message(
            sanitized_line(&progress.message).to_string().chars().take(MAX_SHOWN_CHARS).collect::<String>(),
        );
        bar.set_position(position(progress));
    }
}

/// The number of completed steps.
fn position(progress: &Progress) -> u64 {
    let part = progress.total.filter(|total| *total > 0.0).map_or(0.0, |total| progress.progress / total);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "it is between 0 and the number of steps"
    )]
    let position = (part.clamp(0.0, 1.0) * STEPS as f64) as u64;
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_leaves_its_ends() {
        let at = |progress, total| position(&Progress { progress, total, message: String::new() });
        assert_eq!(at(1.0, Some(4.0)), 250);
        assert_eq!([at(9.0, Some(4.0)), at(f64::MAX, Some(f64::MIN_POSITIVE))], [STEPS, STEPS]);
        assert_eq!([at(1.0, Some(0.0)), at(1.0, None), at(f64::NAN, Some(1.0))], [0, 0, 0]);
    }
}
