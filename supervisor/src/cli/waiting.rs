//! A sign of life on stderr while a supervisor works on a request, where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often it moves: often enough to be seen, and nothing to a terminal.
const TICK: Duration = Duration::from_millis(100);

/// Goes when it is dropped, so that results come on lines of their own.
pub(super) struct Waiting(ProgressBar);

impl Waiting {
    /// With this text beside it.
    pub(super) fn for_text(text: impl Into<String>) -> Self {
        // Hidden by itself where there is no terminal.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(text.into());
        bar.enable_steady_tick(TICK);
        Self(bar)
    }

    /// Another text from now on.
    pub(super) fn now(&self, text: String) {
        self.0.set_message(text);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
