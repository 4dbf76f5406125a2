//! A progress bar on stderr, if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Disappears when dropped, so that results start on a fresh line.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Counts files; their total may be set later.
    pub(super) fn files(what: &'static str) -> Self {
        Self::new(what, 0, "{msg} [{wide_bar}] {pos}/{len} files")
    }

    /// Counts bytes.
    pub(super) fn bytes(what: &'static str, total: u64) -> Self {
        Self::new(what, total, "{msg} [{wide_bar}] {bytes}/{total_bytes}, {eta} left")
    }

    fn new(what: &'static str, total: u64, template: &str) -> Self {
        // indicatif hides the bar itself if stderr is not a terminal.
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(bar.with_style(style.progress_chars("=> ")).with_message(what))
    }

    /// Increases the total.
    pub(super) fn more(&self, count: u64) {
        self.0.inc_length(count);
    }

    /// Advances the bar.
    pub(super) fn done(&self, count: u64) {
        self.0.inc(count);
    }

    /// A callback for a worker thread.
    pub(super) fn counter(&self) -> impl Fn(u64) + Send + 'static {
        let bar = self.0.clone();
        move |count| bar.inc(count)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
