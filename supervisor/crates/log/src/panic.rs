//! Panics as log lines.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{PanicHookInfo, set_hook};

/// From now on a panic is one line of the log, and no longer raw text on standard error: its message may
/// contain what a plugin or a file said, and is sanitized here, whatever the log is written to. With `RUST_BACKTRACE=1` the line has
/// the backtrace.
pub fn log_panics() {
    set_hook(Box::new(log));
}

fn log(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string);
    let thread = std::thread::current();
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    let message = talon_sanitize::panic_message(panic);
    tracing::error!(
        location,
        thread = thread.name(),
        backtrace,
        "panic: {message}; this is a defect of talon"
    );
}
