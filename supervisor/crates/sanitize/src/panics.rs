//! Panics, as text that is safe to show.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write as _;
use std::panic::{PanicHookInfo, set_hook};

use crate::typed::{Raw, Sanitized};

/// The longest message that is printed, in bytes: a panic quotes at most a line or two.
const MAX_MESSAGE: usize = 4096;

/// From now on a panic prints one sanitized line on standard error, instead of raw text: its message may
/// contain what a plugin or a file said, which must not reach a terminal as it is. With `RUST_BACKTRACE=1` the
/// backtrace follows. Programs that write a log instead set a hook of their own later.
pub fn print_panics_sanitized() {
    set_hook(Box::new(print));
}

fn print(panic: &PanicHookInfo<'_>) {
    // Who closed standard error does not want to read it.
    let _ = writeln!(std::io::stderr(), "{}", panic_report(panic));
}

/// A panic as one sanitized line with its place, for a hook that writes it elsewhere. With `RUST_BACKTRACE=1` the
/// backtrace follows.
#[must_use]
pub fn panic_report(panic: &PanicHookInfo<'_>) -> Sanitized {
    let location = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
    let line = describe(&panic_message(panic), &location);
    let backtrace = Backtrace::capture();
    if backtrace.status() != BacktraceStatus::Captured {
        return line;
    }
    crate::sanitized!("{}\n{}", line, Raw::from(backtrace.to_string()).text())
}

/// The message of a panic as one sanitized line of at most 4 KiB, for a hook that logs it.
#[must_use]
pub fn panic_message(panic: &PanicHookInfo<'_>) -> Sanitized {
    sanitize_message(panic.payload_as_str().unwrap_or("no message"))
}

fn sanitize_message(message: &str) -> Sanitized {
    Raw::from(message).line_within(MAX_MESSAGE)
}

fn describe(message: &Sanitized, location: &str) -> Sanitized {
    let location = Raw::from(location).line();
    crate::sanitized!("panic{}: {}; this is a defect of talon: please report it", location, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_one_sanitized_line() {
        let line = describe(&sanitize_message("plugin said\n\u{1b}[2J<|im_start|>"), " at src/x.rs:1:2");
        assert_eq!(
            line,
            "panic at src/x.rs:1:2: plugin said\\n␛[2J<·|im_start|>; this is a defect of talon: please report it"
        );
        assert!(describe(&sanitize_message(&"x".repeat(1 << 20)), "").len() < 2 * MAX_MESSAGE);
    }
}
