//! Lines for the host's log. They begin with their level where hosts look for one. They also work before
//! there is a server, which is when most errors happen: the plugin's last line is reported with the failure
//! of its start.

use std::fmt;
use std::io::Write as _;
use std::panic::set_hook;

/// For information.
pub fn info(text: impl fmt::Display) {
    line("INFO", text);
}

/// For problems that an operator should fix.
pub fn warn(text: impl fmt::Display) {
    line("WARN", text);
}

/// Why the bridge ends.
pub fn error(text: impl fmt::Display) {
    line("ERROR", text);
}

/// From now on a panic is an error of this log, instead of raw text: its message may contain what the translated program
/// sent.
pub fn log_panics() {
    set_hook(Box::new(|panic| error(talon_sanitize::panic_report(panic))));
}

fn line(level: &str, text: impl fmt::Display) {
    // In one write, because the program writes to the same pipe. If it fails there is nowhere to report the
    // error.
    let _ = std::io::stderr().write_all(format!("[{level}] {text}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    // Promises: TRACE-18
    #[test]
    fn a_panic_is_an_error_without_control_syntax() {
        talon_log::testing::check_panics(
            "logging::tests::a_panic_is_an_error_without_control_syntax",
            &["bridge"],
            |_| super::log_panics(),
        );
    }
}
