//! Messages of several lines.
//!
//! A line that ends in a backslash continues on the next line, and so does text inside a fence of three
//! backticks.

const FENCE: &str = "```";

/// Whether the message continues on the next line.
pub(super) fn is_incomplete(text: &str) -> bool {
    if text.starts_with('/') && !text.starts_with("//") {
        return false;
    }
    let fences = text.lines().filter(|line| line.trim_start().starts_with(FENCE)).count();
    fences % 2 == 1 || ends_in_backslash(text)
}

/// An odd number of trailing backslashes; in an even number all are literal.
fn ends_in_backslash(text: &str) -> bool {
    (text.len() - text.trim_end_matches('\\').len()) % 2 == 1
}

/// The message without the backslashes that joined its lines.
pub(super) fn join_lines(text: &str) -> String {
    let mut all = String::with_capacity(text.len());
    let mut fenced = false;
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            all.push('\n');
        }
        let goes_on = !fenced && ends_in_backslash(line);
        all.push_str(if goes_on { &line[..line.len() - 1] } else { line });
        fenced ^= line.trim_start().starts_with(FENCE);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_and_fences_go_on() {
        for (text, open) in [
            ("hello", false),
            ("hello \\", true),
            ("a path\\\\", false),
            ("```rust\nfn main() {}", true),
            ("```rust\nfn main() {}\n```", false),
            ("```\na \\\n```", false),
            ("/help \\", false),
            ("//x \\", true),
        ] {
            assert_eq!(is_incomplete(text), open, "{text:?}");
        }
        assert_eq!(join_lines("one \\\ntwo"), "one \ntwo");
        assert_eq!(join_lines("```\na \\\nb\n```"), "```\na \\\nb\n```");
    }
}
