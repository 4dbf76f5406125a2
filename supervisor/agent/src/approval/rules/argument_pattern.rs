//! Patterns of arguments.

use regex::Regex;
use talon_agent_settings::confirm_pattern;

/// The longest pattern. 1 KiB: a command line with some wildcards.
const MAX_PATTERN_BYTES: usize = 1024;

/// What `*` stands for: any text that starts no other command in a shell.
const WITHIN_A_COMMAND: &str = r"[^\x00-\x1f\x7f;&|<>()$`]*";
/// What `**` stands for.
const ANYTHING: &str = r"(?s:.*)";

/// Compiles a pattern: `*` for any text within a command, `**` for any text, a backslash before a character
/// that stands for itself.
pub(super) fn compile(pattern: &str) -> Option<Regex> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return None;
    }
    let (mut expression, mut literal) = (r"\A".to_owned(), String::new());
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '*' => {
                expression.push_str(&regex::escape(&std::mem::take(&mut literal)));
                let anything = rest.next_if_eq(&'*').is_some();
                expression.push_str(if anything { ANYTHING } else { WITHIN_A_COMMAND });
            }
            '\\' => literal.push(rest.next()?),
            other => literal.push(other),
        }
    }
    expression.push_str(&regex::escape(&literal));
    expression.push_str(r"\z");
    confirm_pattern(&expression).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, text: &str) -> bool {
        compile(pattern).expect("a pattern").is_match(text)
    }

    // Promises: AGENT-84
    #[test]
    fn a_star_stays_within_one_command() {
        for text in ["git log", "git log --oneline \"a b\"", "git log "] {
            assert!(fits("git log*", text), "{text:?}");
        }
        for text in [
            "git log; rm x",
            "git log && rm x",
            "git log | sh",
            "git log > x",
            "git log $(rm x)",
            "git log `rm x`",
            "git log\nrm x",
            "git log\0",
            "sudo git log",
        ] {
            assert!(!fits("git log*", text), "{text:?}");
            assert!(fits("**git log**", text), "{text:?}");
        }
        assert!(fits(r"a\*b\\", r"a*b\") && !fits(r"a\*b", "axb") && !fits("a.c", "abc"));
        assert!(compile("a\\").is_none() && compile(&"a".repeat(2000)).is_none());
    }
}
