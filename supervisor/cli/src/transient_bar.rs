//! Bars and spinners on stderr while a verb works, if stderr is a terminal.

use std::ops::Deref;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal_style::{is_plain, uses_words};

/// Refresh interval of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// A spinner without UTF-8.
const ASCII_TICKS: &str = "-\\|/ ";

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

    /// A spinner beside a text and the elapsed time; none for a screen reader.
    pub(crate) fn spinner(text: impl Into<String>) -> Self {
        let target = if is_plain() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = Self(ProgressBar::with_draw_target(None, target));
        bar.begin_spinning(text.into());
        bar
    }

    fn begin_spinning(&self, text: String) {
        self.set_template("{spinner} {elapsed} {wide_msg}");
        if uses_words() {
            let style = self.0.style().tick_chars(ASCII_TICKS);
            self.0.set_style(style);
        }
        self.0.set_message(text);
        self.0.enable_steady_tick(TICK);
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

/// Several spinners below each other, with an elapsed time each. They disappear when dropped.
#[derive(Default)]
pub(crate) struct SpinnerGroup {
    group: MultiProgress,
    bars: Vec<TransientBar>,
}

impl SpinnerGroup {
    /// Adds a spinner that has run for some time.
    pub(crate) fn add(&mut self, text: impl Into<String>, elapsed: Duration) {
        let bar = TransientBar(self.group.add(ProgressBar::no_length().with_elapsed(elapsed)));
        bar.begin_spinning(text.into());
        self.bars.push(bar);
    }

    /// Changes the text of a spinner, by its place.
    pub(crate) fn set_text(&self, at: usize, text: String) {
        if let Some(bar) = self.bars.get(at) {
            bar.set_message(text);
        }
    }
}
