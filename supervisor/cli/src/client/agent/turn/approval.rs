//! Renders a call that waits for an approval, and parses the reply.

use std::time::{Duration, SystemTime};

use anstyle::{AnsiColor, Style};
use talon_proto::agent::Approval;
use talon_sanitize::{Raw, sanitized};

use crate::client::agent::formatting::{count, single_line};
use crate::line::Line;
use crate::show;

/// The most bytes of arguments that are shown inline before the question, about what a person can read on a
/// terminal. Longer ones are left to `talon approval show`.
pub(crate) const MAX_INLINE_BYTES: usize = 16 << 10;
/// Bytes of a denial's reason; the agent accepts no more.
const MAX_REASON_BYTES: usize = 500;

const KEY: Style = AnsiColor::Cyan.on_default();
const MARK: Style = AnsiColor::Yellow.on_default().bold();

/// Whether the call still needs a decision.
pub(crate) fn is_pending(approval: &Approval) -> bool {
    approval.state.is_empty() || approval.state == "pending"
}

/// Whether the whole call can be shown inline.
pub(crate) fn is_short(approval: &Approval) -> bool {
    approval.args.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() <= MAX_INLINE_BYTES
}

/// The call line by line, exactly as it will run. Nothing is cut; characters that could act on the terminal
/// or be mistaken for others are marked.
pub(crate) fn lines(approval: &Approval, now: SystemTime) -> Vec<Line> {
    let who = match approval.subagent.as_str() {
        "" => "".into(),
        name => sanitized!(" (wanted by the sub-agent {})", single_line(name)),
    };
    let head = sanitized!(
        " {}.{}{}: {}",
        single_line(&approval.plugin),
        single_line(&approval.action),
        who,
        single_line(&approval.why)
    );
    let mut lines =
        vec![Line::styled(MARK, "approval").and(sanitized!(" {}", single_line(&approval.id))).and(head)];
    if approval.args.is_empty() {
        lines.push(Line::from("  without arguments"));
    }
    for (key, value) in &approval.args {
        // A multi-line value is printed as a block, so that it reads as it will run.
        if value.contains('\n') {
            let about = sanitized!(" ({} bytes)", single_line(&count(value.len() as u64)));
            lines.push(Line::from("  ").and_styled(KEY, single_line(key)).and(about));
            lines.extend(value.lines().map(|line| Line::from("  │ ").and(Raw::from(line).line())));
        } else {
            lines.push(Line::from("  ").and_styled(KEY, single_line(key)).and(" = ").and(single_line(value)));
        }
    }
    if is_pending(approval) && approval.expires_unix_ms > 0 {
        let left = show::system_time(approval.expires_unix_ms).duration_since(now).unwrap_or(Duration::ZERO);
        lines.push(Line::from(sanitized!("  expires in {}", single_line(&show::short(left)))));
    }
    lines
}

/// A hint how to decide in another shell.
pub(crate) fn decide_hint(approval: &Approval) -> Line {
    let id = single_line(&approval.id);
    Line::from(sanitized!("  decide with `talon approval approve {}` or `talon approval deny {}`", id, id))
}

/// The reply to an approval question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ApprovalReply {
    Approve,
    /// With a reason for the model, possibly empty.
    Deny(String),
    /// No decision for now.
    Later,
    /// Not understood: the question stays open.
    Unclear,
}

impl ApprovalReply {
    /// Parses yes, no, no with a reason, or later. An empty line means no; only an explicit yes approves.
    pub(crate) fn parse(line: &str) -> Self {
        let line = line.trim();
        let (word, rest) = line.split_once([' ', ',', ':']).unwrap_or((line, ""));
        match (word.to_ascii_lowercase().as_str(), rest.trim()) {
            ("y" | "yes", "") => Self::Approve,
            ("" | "n" | "no", reason) => {
                Self::Deny(reason[..reason.floor_char_boundary(MAX_REASON_BYTES)].to_owned())
            }
            ("l" | "later", "") => Self::Later,
            _ => Self::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-42
    #[test]
    fn only_a_plain_yes_approves() {
        assert_eq!(ApprovalReply::parse(" Yes\n"), ApprovalReply::Approve);
        assert_eq!(ApprovalReply::parse(""), ApprovalReply::Deny(String::new()));
        assert_eq!(
            ApprovalReply::parse("no, use trash instead"),
            ApprovalReply::Deny("use trash instead".into())
        );
        assert_eq!(ApprovalReply::parse("later"), ApprovalReply::Later);
        for line in ["yes please", "ok", "why?", "yy"] {
            assert_eq!(ApprovalReply::parse(line), ApprovalReply::Unclear, "{line}");
        }
        assert_eq!(
            ApprovalReply::parse(&format!("n {}", "é".repeat(400))),
            ApprovalReply::Deny("é".repeat(250))
        );
    }

    // Promises: CLI-42
    #[test]
    fn what_will_run_is_shown_whole_and_inert() {
        let approval = Approval {
            id: "01A".into(),
            plugin: "shell".into(),
            action: "run".into(),
            args: [("command", "rm -rf build\u{1b}[1A"), ("script", "a\nb\u{202e}")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            why: "pattern: rm -rf".into(),
            expires_unix_ms: 3_600_000,
            subagent: "PlannerAgent".into(),
            ..Approval::default()
        };
        let text: Vec<String> =
            lines(&approval, SystemTime::UNIX_EPOCH).iter().map(|line| line.render(false)).collect();
        assert_eq!(
            text,
            [
                "approval 01A shell.run (wanted by the sub-agent PlannerAgent): pattern: rm -rf",
                "  command = rm -rf build␛[1A",
                "  script (6 bytes)",
                "  │ a",
                "  │ b(U+202E)",
                "  expires in 1h 0m",
            ]
        );
        assert!(is_short(&approval));
    }
}
