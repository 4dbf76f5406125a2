//! A spinner on stderr while the supervisor works on a request, if stderr is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Refresh interval.
const TICK: Duration = Duration::from_millis(100);

/// Disappears when dropped, so that results start on a fresh line.
pub(crate) struct Spinner(ProgressBar);

impl Spinner {
    /// Starts the spinner with a text.
    pub(crate) fn with_text(text: impl Into<String>) -> Self {
        // indicatif hides the spinner itself if stderr is not a terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(text.into());
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Replaces the text.
    pub(crate) fn set_text(&self, text: String) {
        self.0.set_message(text);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
