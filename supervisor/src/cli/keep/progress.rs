//! How far it is: a bar on stderr, where that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Goes when it is dropped, so that results come on lines of their own.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Of files, whose number may come later.
    pub(super) fn files(what: &'static str) -> Self {
        Self::new(what, 0, "{msg} [{wide_bar}] {pos}/{len} files")
    }

    /// Of bytes.
    pub(super) fn bytes(what: &'static str, total: u64) -> Self {
        Self::new(what, total, "{msg} [{wide_bar}] {bytes}/{total_bytes}, {eta} left")
    }

    fn new(what: &'static str, total: u64, template: &str) -> Self {
        // Hidden by itself where there is no terminal.
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(bar.with_style(style.progress_chars("=> ")).with_message(what))
    }

    /// There is more to come.
    pub(super) fn more(&self, count: u64) {
        self.0.inc_length(count);
    }

    /// So much is done.
    pub(super) fn done(&self, count: u64) {
        self.0.inc(count);
    }

    /// For who does the work on another thread.
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
