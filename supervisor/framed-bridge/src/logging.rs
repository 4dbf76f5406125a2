//! Lines for the host's log. They begin with their level where hosts look for one. They also work before
//! there is a server, which is when most errors happen: the plugin's last line is reported with the failure
//! of its start.

use std::fmt;
use std::io::Write as _;

/// For information.
pub(crate) fn info(text: impl fmt::Display) {
    line("INFO", text);
}

/// For problems that an operator should fix.
pub(crate) fn warn(text: impl fmt::Display) {
    line("WARN", text);
}

/// Why the bridge ends.
pub(crate) fn error(text: impl fmt::Display) {
    line("ERROR", text);
}

fn line(level: &str, text: impl fmt::Display) {
    // In one write, because the program writes to the same pipe. If it fails there is nowhere to report the
    // error.
    let _ = std::io::stderr().write_all(format!("[{level}] {text}\n").as_bytes());
}
