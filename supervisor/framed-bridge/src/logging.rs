//! Lines for the host's log. They begin with their level where hosts look for one. They also work before there is a
//! server, which is when most errors happen: the plugin's last line is reported with the failure of its start.

use std::fmt;
use std::io::Write as _;

/// How much of a text of the program is shown in one of our lines.
const MAX_SHOWN_BYTES: usize = 100;

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
    // In one write, because the program writes to the same pipe. If it fails there is nowhere to report the error.
    let _ = std::io::stderr().write_all(format!("[{level}] {text}\n").as_bytes());
}

/// The beginning of a text of the program, quoted and on one line.
pub(crate) fn quoted(text: &str) -> String {
    if text.len() <= MAX_SHOWN_BYTES {
        return format!("{text:?}");
    }
    let mut end = MAX_SHOWN_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{:?}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_one_short_line() {
        assert_eq!(quoted("a\n\u{1b}[2J"), r#""a\n\u{1b}[2J""#);
        let long = quoted(&"ä".repeat(1000));
        assert!(long.len() < 120 && long.ends_with('…'), "{long}");
    }
}
