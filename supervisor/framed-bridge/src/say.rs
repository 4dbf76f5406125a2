//! Lines for the host's log. They begin with their level where hosts look for one, and go out before there is a server, too,
//! which is when most goes wrong: what a plugin said last is told with the failure of its start.

use std::fmt;
use std::io::Write as _;

/// How much of a text of the program's is shown in a line of ours.
const MAX_SHOWN_BYTES: usize = 100;

/// What is good to know.
pub(crate) fn info(text: impl fmt::Display) {
    line("INFO", text);
}

/// What somebody should mend.
pub(crate) fn warn(text: impl fmt::Display) {
    line("WARN", text);
}

/// Why it ends.
pub(crate) fn error(text: impl fmt::Display) {
    line("ERROR", text);
}

fn line(level: &str, text: impl fmt::Display) {
    // In one write, because the program writes to the same pipe. Nobody could be told that it fails.
    let _ = std::io::stderr().write_all(format!("[{level}] {text}\n").as_bytes());
}

/// The beginning of a text of the program's, quoted and on one line.
pub(crate) fn shown(text: &str) -> String {
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
        assert_eq!(shown("a\n\u{1b}[2J"), r#""a\n\u{1b}[2J""#);
        let long = shown(&"ä".repeat(1000));
        assert!(long.len() < 120 && long.ends_with('…'), "{long}");
    }
}
