//! Formats amounts and outcomes for people.

use std::time::Duration;

use indicatif::HumanCount;
use talon_sanitize::{Raw, Sanitized, TerminalText, sanitized};

use crate::exit;

/// Picodollars in a microdollar, the finest unit that is shown.
const PICO_OF_MICRO: u64 = 1_000_000;
/// Microdollars in a dollar.
const MICRO: u64 = 1_000_000;
/// The minimum number of decimals of an amount.
const MIN_DECIMALS: usize = 2;

/// An amount in US dollars, rounded up to a millionth: `$0.0012`. Zero is `$0`.
pub(super) fn usd(pico: u64) -> String {
    if pico == 0 {
        return "$0".to_owned();
    }
    let micro = pico.div_ceil(PICO_OF_MICRO);
    let parts = format!("{:06}", micro % MICRO);
    let kept = parts.trim_end_matches('0').len().max(MIN_DECIMALS);
    format!("${}.{}", micro / MICRO, &parts[..kept])
}

/// A number with thousands separators.
pub(super) fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// A duration: `480 ms`, `3.2 s`, `2m 5s`.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms} ms"),
        1000..=59_999 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => crate::show::short(Duration::from_millis(ms)),
    }
}

/// Sanitized text of the agent, on one line.
pub(super) fn single_line(text: &str) -> Sanitized {
    Raw::from(text).line()
}

/// Sanitized text on one line, cut to at most this many bytes.
pub(super) fn bounded_line(text: &str, max_bytes: usize) -> Sanitized {
    Raw::from(text.trim()).line_within(max_bytes)
}

/// What a model wrote, on one line as it is, cut to at most this many bytes.
pub(super) fn bounded_text(text: &str, max_bytes: usize) -> TerminalText {
    let text = text.trim();
    let end = text.floor_char_boundary(max_bytes);
    let more = if end < text.len() { "…" } else { "" };
    Raw::from([&text[..end], more].concat()).terminal_line()
}

/// The content inside the guard's envelope.
pub(super) fn block_content(block: &str) -> &str {
    let block = block.trim();
    match block.split_once('\n') {
        Some((first, rest)) if first.starts_with("[plugin_output") => {
            rest.rsplit_once('\n').map_or(rest, |(content, _)| content)
        }
        _ => block,
    }
}

/// Converts a tool name as models see it into the operators' form.
pub(super) fn tool_name(name: &str) -> Sanitized {
    single_line(&name.replacen("__", ".", 1))
}

/// `3 sessions`, `1 session`.
pub(super) fn count_of(number: u64, what: &'static str) -> Sanitized {
    let s = if number == 1 { "" } else { "s" };
    sanitized!("{} {}{}", single_line(&count(number)), what, s)
}

/// The exit code of a turn without an answer, by the reason that the agent gave.
pub(super) fn exit_code(reason: &str) -> u8 {
    match reason {
        // A limit, or an unusable answer: the turn itself ran.
        "iterations"
        | "tool_errors"
        | "identical_successes"
        | "no_progress"
        | "wall_time"
        | "cost"
        | "empty_answer"
        | "invalid_answer"
        | "expired"
        | "cancelled" => exit::TOOL_ERROR,
        "answer_cut_off" | "answer_withheld" | "answer_refused" => exit::NO_WHOLE_ANSWER,
        "over_budget" | "context_full" => exit::REFUSED,
        "no_provider" | "no_vision" | "key_refused" | "request_refused" => exit::CONFIG,
        "exhausted" | "interrupted" => exit::HOST_FAULT,
        _ => exit::FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_never_shown_as_less_than_they_are() {
        let shown = [0, 1, 1_200_000_000, 1_200_000_001, 2_000_000_000_000, u64::MAX].map(usd);
        assert_eq!(shown, ["$0", "$0.000001", "$0.0012", "$0.001201", "$2.00", "$18446744.07371"]);
    }

    #[test]
    fn spans_have_the_unit_that_fits() {
        assert_eq!([7, 3240, 125_000].map(duration), ["7 ms", "3.2 s", "2m 5s"]);
    }

    // Promises: CLI-40
    #[test]
    fn each_reason_has_its_exit_code() {
        for (reason, code) in [
            ("iterations", 1),
            ("over_budget", 3),
            ("no_provider", 6),
            ("no_vision", 6),
            ("key_refused", 6),
            ("request_refused", 6),
            ("exhausted", 4),
            ("answer_cut_off", 9),
            ("answer_refused", 9),
            ("internal", 70),
        ] {
            assert_eq!(exit_code(reason), code, "{reason}");
        }
    }
}
