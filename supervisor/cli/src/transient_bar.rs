//! Bars and spinners on stderr while a verb works, if stderr is a terminal.

use std::ops::Deref;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Refresh interval of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// Disappears when dropped, so that results start on a fresh line.
pub(crate) struct TransientBar(ProgressBar);

impl TransientBar {
    /// A bar of this length, if it is known already.
    pub(crate) fn new(length: Option<u64>, template: &str) -> Self {
        // indicatif hides the bar itself if stderr is not a terminal.
        let bar = Self(ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr()));
        bar.set_template(template);
        bar
    }

    /// A spinner beside a text and the elapsed time.
    pub(crate) fn spinner(text: impl Into<String>) -> Self {
        let bar = Self::new(None, "{spinner} {msg}, {elapsed}");
        bar.set_message(text.into());
        bar.enable_steady_tick(TICK);
        bar
    }

    /// Changes the look.
    pub(crate) fn set_template(&self, template: &str) {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        self.0.set_style(style.progress_chars("=> "));
    }

    /// A callback for a worker thread that advances the bar.
    pub(crate) fn counter(&self) -> impl Fn(u64) + Send + 'static {
        let bar = self.0.clone();
        move |count| bar.inc(count)
    }
}

impl Deref for TransientBar {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for TransientBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
