//! A call that waits for a person: as it will run, and what was answered.

use std::time::{Duration, SystemTime};

use anstyle::{AnsiColor, Style};
use talon_proto::agent::Approval;
use talon_sanitize::{Raw, inert};

use super::super::super::line::Line;
use super::super::super::show;
use super::super::words::{count, one};

/// Arguments that together are longer than this are not asked about in passing: `talon approval show` has a page for them. About
/// what a person can look through on a terminal.
pub(in crate::cli) const MAX_ASKED_BYTES: usize = 16 << 10;
/// How much of a denial's reason is sent; the agent takes no more.
const MAX_REASON_BYTES: usize = 500;

const KEY: Style = AnsiColor::Cyan.on_default();
const MARK: Style = AnsiColor::Yellow.on_default().bold();

/// Whether somebody still has to decide.
pub(in crate::cli) fn is_pending(approval: &Approval) -> bool {
    approval.state.is_empty() || approval.state == "pending"
}

/// Whether all of it can be shown where it is asked about.
pub(in crate::cli) fn is_short(approval: &Approval) -> bool {
    approval.args.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() <= MAX_ASKED_BYTES
}

/// What will run, line by line. Nothing of it is cut; what would act on a terminal, or could be taken for something else, comes
/// out marked.
pub(in crate::cli) fn lines(approval: &Approval, now: SystemTime) -> Vec<Line> {
    let who = match approval.subagent.as_str() {
        "" => "".into(),
        name => inert!(" (wanted by the sub-agent {})", one(name)),
    };
    let head = inert!(" {}.{}{}: {}", one(&approval.plugin), one(&approval.action), who, one(&approval.why));
    let mut lines = vec![Line::styled(MARK, "approval").and(inert!(" {}", one(&approval.id))).and(head)];
    let mut args: Vec<(&String, &String)> = approval.args.iter().collect();
    args.sort();
    if args.is_empty() {
        lines.push(Line::from("  without arguments"));
    }
    for (key, value) in args {
        // A value of several lines is a block, so that it reads as it will run.
        if value.contains('\n') {
            let about = inert!(" ({} bytes)", one(&count(value.len() as u64)));
            lines.push(Line::from("  ").and_styled(KEY, one(key)).and(about));
            lines.extend(value.lines().map(|line| Line::from("  │ ").and(Raw::from(line).line())));
        } else {
            lines.push(Line::from("  ").and_styled(KEY, one(key)).and(" = ").and(one(value)));
        }
    }
    if is_pending(approval) && approval.expires_unix_ms > 0 {
        let left = show::at(approval.expires_unix_ms).duration_since(now).unwrap_or(Duration::ZERO);
        lines.push(Line::from(inert!("  expires in {}", one(&show::short(left)))));
    }
    lines
}

/// How to decide from elsewhere.
pub(in crate::cli) fn elsewhere(approval: &Approval) -> Line {
    let id = one(&approval.id);
    Line::from(inert!("  decide with `talon approval approve {}` or `talon approval deny {}`", id, id))
}

/// What somebody answered.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) enum Reply {
    Approve,
    /// With what the model is told besides.
    Deny(String),
    /// Neither, now.
    Later,
    /// Something else: the question stands.
    Unclear,
}

impl Reply {
    /// Yes, no, no with a reason, later. The empty line is a no; nothing that is not a yes ever approves.
    pub(in crate::cli) fn of(line: &str) -> Self {
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

    #[test]
    fn only_a_plain_yes_approves() {
        assert_eq!(Reply::of(" Yes\n"), Reply::Approve);
        assert_eq!(Reply::of(""), Reply::Deny(String::new()));
        assert_eq!(Reply::of("no, use trash instead"), Reply::Deny("use trash instead".into()));
        assert_eq!(Reply::of("later"), Reply::Later);
        for line in ["yes please", "ok", "why?", "yy"] {
            assert_eq!(Reply::of(line), Reply::Unclear, "{line}");
        }
        assert_eq!(Reply::of(&format!("n {}", "é".repeat(400))), Reply::Deny("é".repeat(250)));
    }

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
