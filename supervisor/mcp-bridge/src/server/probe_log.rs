//! Leaves one report out of a server's log: that it does not know `server/discover`.
//!
//! The official Python library up to its versions of 2025 reports an unknown request in some seventy lines, one
//! for each request that it knows. The bridge caused that, and the operator can do nothing about it; so one
//! line stands in their place.

use std::io::{self, Write};

/// How the report begins.
const HEADER: &str = "Failed to validate request";
/// What it is about. It may stand in the next lines, and be broken over two of them.
const PROBE: &str = "server/discover";
/// In how many lines that has to be found.
const MAX_HELD_LINES: usize = 8;
/// What stands in its place.
const NOTICE: &[u8] = b"this server reports at length that it does not know server/discover, by which the bridge \
    asks for the newest revision of MCP; that report is left out here. With config.protocol: \"2025-11-25\" it is not \
    asked\n";

/// Writes lines on, without the report. One write is one line.
pub(crate) struct ProbeLog<W: Write> {
    to: W,
    state: State,
}

enum State {
    /// There was no report.
    Waiting,
    /// Lines that may begin one.
    Held(Vec<Vec<u8>>),
    /// In the report.
    LeavingOut,
    /// After it.
    Done,
}

impl<W: Write> ProbeLog<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, state: State::Waiting }
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        match &mut self.state {
            State::Waiting if contains(line, HEADER) => self.state = State::Held(vec![line.to_vec()]),
            State::Held(held) if is_continuation(line) => {
                held.push(line.to_vec());
                if contains(&without_spaces(held), PROBE) {
                    self.state = State::LeavingOut;
                    return self.to.write_all(NOTICE);
                }
                if held.len() == MAX_HELD_LINES {
                    return self.flush_held();
                }
            }
            State::Held(_) => {
                self.flush_held()?;
                return self.line(line);
            }
            State::LeavingOut if is_continuation(line) => {}
            State::LeavingOut => {
                self.state = State::Done;
                return self.to.write_all(line);
            }
            State::Waiting | State::Done => return self.to.write_all(line),
        }
        Ok(())
    }

    fn flush_held(&mut self) -> io::Result<()> {
        if let State::Held(held) = std::mem::replace(&mut self.state, State::Waiting) {
            for line in held {
                self.to.write_all(&line)?;
            }
        }
        Ok(())
    }
}

impl<W: Write> Write for ProbeLog<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.line(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_held()?;
        self.to.flush()
    }
}

/// The lines of a report name a field, which is one word, or are indented.
fn is_continuation(line: &[u8]) -> bool {
    line.starts_with(b"  ") || !line.trim_ascii().contains(&b' ')
}

fn contains(line: &[u8], words: &str) -> bool {
    line.windows(words.len()).any(|part| part == words.as_bytes())
}

fn without_spaces(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flatten().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(lines: &[&str]) -> Vec<String> {
        let mut to = Vec::new();
        let mut log = ProbeLog::new(&mut to);
        for line in lines {
            log.write_all(format!("{line}\n").as_bytes()).expect("a vector");
        }
        log.flush().expect("a vector");
        String::from_utf8(to).expect("text").lines().map(str::to_owned).collect()
    }

    const REPORT: [&str; 7] = [
        "Failed to validate request: 24 validation errors for ClientRequest",
        "PingRequest.method",
        "  Input should be 'ping' [type=literal_error, input_value='server/disco",
        "      ver', input_type=str]",
        "    For further information visit https://errors.pydantic.dev/2.11/v/literal_error",
        "InitializeRequest.method",
        "  Input should be 'initialize' [type=literal_error, input_value='server/discover', input_type=str]",
    ];

    // Promises: MCP-28
    #[test]
    fn the_report_on_the_probe_is_one_line_and_all_else_stays() {
        let mut lines = vec!["Starting"];
        lines.extend(REPORT);
        lines.extend(["Ready to serve", "  indented"]);
        let shown = passed(&lines);
        assert_eq!(shown.len(), 4, "{shown:?}");
        assert_eq!((shown[0].as_str(), shown[2].as_str()), ("Starting", "Ready to serve"));
        assert!(shown[1].contains("server/discover") && shown[1].contains("config.protocol"), "{shown:?}");
    }

    #[test]
    fn reports_on_other_requests_are_shown() {
        let other = [
            "Failed to validate request: 1 validation error for ClientRequest",
            "CallToolRequest.params.name",
            "  Field required [type=missing]",
            "done with it",
        ];
        assert_eq!(passed(&other), other);
        let cut_short = &other[..2];
        assert_eq!(passed(cut_short), cut_short, "the end of the log shows what was held");
        let long: Vec<String> = (0..20).map(|n| format!("  {n}")).collect();
        let mut lines = vec![other[0]];
        lines.extend(long.iter().map(String::as_str));
        assert_eq!(passed(&lines), lines);
    }
}
