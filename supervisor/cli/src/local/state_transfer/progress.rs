//! How far a transfer is.

use crate::transient_bar::TransientBar;

/// Counts files; their total may be set later.
pub(super) fn files(what: &'static str) -> TransientBar {
    bar(what, 0, "{msg} [{wide_bar}] {pos}/{len} files")
}

/// Counts bytes.
pub(super) fn bytes(what: &'static str, total: u64) -> TransientBar {
    bar(what, total, "{msg} [{wide_bar}] {bytes}/{total_bytes}, {eta} left")
}

fn bar(what: &'static str, total: u64, template: &str) -> TransientBar {
    let bar = TransientBar::new(Some(total), template);
    bar.set_message(what);
    bar
}
