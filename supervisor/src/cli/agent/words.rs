//! Amounts and outcomes as people read them.

use std::time::Duration;

use indicatif::HumanCount;
use talon_sanitize::{Raw, Sanitized, inert};

use crate::exit;

/// Picodollars of a microdollar: what is shown is not finer.
const PICO_OF_MICRO: u64 = 1_000_000;
/// Microdollars of a dollar.
const MICRO: u64 = 1_000_000;
/// Decimals of an amount, at least.
const MIN_DECIMALS: usize = 2;

/// An amount in US dollars, rounded up to a millionth: `$0.0012`. Nothing is `$0`.
pub(super) fn usd(pico: u64) -> String {
    if pico == 0 {
        return "$0".to_owned();
    }
    let micro = pico.div_ceil(PICO_OF_MICRO);
    let parts = format!("{:06}", micro % MICRO);
    let kept = parts.trim_end_matches('0').len().max(MIN_DECIMALS);
    format!("${}.{}", micro / MICRO, &parts[..kept])
}

/// A number with its thousands apart.
pub(super) fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

/// How long something took: `480 ms`, `3.2 s`, `2m 5s`.
pub(super) fn took(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms} ms"),
        1000..=59_999 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => super::super::show::short(Duration::from_millis(ms)),
    }
}

/// The text of the agent's own making for one line.
pub(super) fn one(text: &str) -> Sanitized {
    Raw::from(text).line()
}

/// At most so many bytes of it, in one line.
pub(super) fn within(text: &str, max_bytes: usize) -> Sanitized {
    Raw::from(text.trim()).line_within(max_bytes)
}

/// What is between the marks of the guard's block.
pub(super) fn content(block: &str) -> &str {
    let block = block.trim();
    match block.split_once('\n') {
        Some((first, rest)) if first.starts_with("[plugin_output") => {
            rest.rsplit_once('\n').map_or(rest, |(content, _)| content)
        }
        _ => block,
    }
}

/// A tool as operators call it, by the name that models have for it.
pub(super) fn tool(name: &str) -> Sanitized {
    one(&name.replacen("__", ".", 1))
}

/// `3 sessions`, `1 session`.
pub(super) fn counted(number: u64, what: &'static str) -> Sanitized {
    let s = if number == 1 { "" } else { "s" };
    inert!("{} {}{}", one(&count(number)), what, s)
}

/// The exit code of a turn that ended without an answer, by the word that says why.
pub(super) fn exit_code(reason: &str) -> u8 {
    match reason {
        // A limit, or an answer that was none: what was asked for was tried.
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
        "over_budget" | "context_full" => exit::REFUSED,
        "no_provider" => exit::CONFIG,
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
        assert_eq!([7, 3240, 125_000].map(took), ["7 ms", "3.2 s", "2m 5s"]);
    }

    #[test]
    fn each_reason_has_its_exit_code() {
        for (reason, code) in
            [("iterations", 1), ("over_budget", 3), ("no_provider", 6), ("exhausted", 4), ("internal", 70)]
        {
            assert_eq!(exit_code(reason), code, "{reason}");
        }
    }
}
