//! Renders a call that waits for an approval, and parses the reply.

use std::time::{Duration, SystemTime};

use anstyle::{AnsiColor, Style};
use talon_proto::agent::Approval;
use talon_sanitize::{Raw, sanitized};

use crate::client::agent::formatting::{count, single_line};
use crate::client::form_filler::FormFiller;
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

/// The call line by line, exactly as it will run. Nothing is cut; only characters that could act on the
/// terminal are notes.
pub(crate) fn lines(approval: &Approval, now: SystemTime) -> Vec<Line> {
    let who = match approval.subagent.as_str() {
        "" => "".into(),
        name => sanitized!(" (wanted by the sub-agent {})", single_line(name)),
    };
    if !approval.question.is_empty() {
        return question_lines(approval, now);
    }
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
            lines.extend(
                value.lines().map(|line| Line::from("  │ ").and_text(Raw::from(line).terminal_line())),
            );
        } else {
            let value = Raw::from(value).terminal_line();
            lines.push(Line::from("  ").and_styled(KEY, single_line(key)).and(" = ").and_text(value));
        }
    }
    lines.extend(expiry_line(approval, now));
    lines
}

fn expiry_line(approval: &Approval, now: SystemTime) -> Option<Line> {
    (is_pending(approval) && approval.expires_unix_ms > 0).then(|| {
        let left = show::system_time(approval.expires_unix_ms).duration_since(now).unwrap_or(Duration::ZERO);
        Line::from(sanitized!("  expires in {}", single_line(&show::short(left))))
    })
}

/// A plugin's question, each line of it marked as the plugin's, with what has to be filled in.
fn plugin_question_lines(approval: &Approval) -> Vec<Line> {
    let head = sanitized!(
        " {} of the plugin {}, in its own words (asked in a call of {}):",
        single_line(&approval.id),
        single_line(&approval.plugin),
        single_line(&approval.action)
    );
    let mut lines = vec![Line::styled(MARK, "question").and(head)];
    let said = approval.question.lines().map(|line| sanitized!("> {}", Raw::from(line).line()));
    lines.extend(said.map(Line::from));
    if let Ok(filler) = FormFiller::new(&approval.form) {
        lines.extend(filler.fields().map(Line::from));
    }
    lines
}

/// A question of the model, with the answers that it suggests.
fn model_question_lines(approval: &Approval) -> Vec<Line> {
    let mut lines =
        vec![Line::styled(MARK, "question").and(sanitized!(" {} of the model:", single_line(&approval.id)))];
    lines.extend(approval.question.lines().map(|line| Line::from("  ").and(Raw::from(line).line())));
    for (at, choice) in approval.choices.iter().enumerate() {
        let number = sanitized!("  {}: ", at + 1);
        lines.push(Line::default().and_styled(KEY, number).and(single_line(choice)));
    }
    lines
}

fn question_lines(approval: &Approval, now: SystemTime) -> Vec<Line> {
    let mut lines = match approval.form.as_str() {
        "" => model_question_lines(approval),
        _ => plugin_question_lines(approval),
    };
    if !approval.answer.is_empty() {
        lines.push(Line::from("  answered: ").and(single_line(&approval.answer)));
    }
    lines.extend(expiry_line(approval, now));
    lines
}

/// A hint how to decide in another shell.
pub(crate) fn decide_hint(approval: &Approval) -> Line {
    let id = single_line(&approval.id);
    if !approval.form.is_empty() {
        return Line::from(sanitized!(
            "  answer with `talon approval answer {} JSON`, an object with these fields, or `talon approval deny {}`",
            id,
            id
        ));
    }
    if !approval.question.is_empty() {
        return Line::from(sanitized!(
            "  answer with `talon approval answer {} TEXT`, or `talon approval deny {}`",
            id,
            id
        ));
    }
    Line::from(sanitized!("  decide with `talon approval approve {}` or `talon approval deny {}`", id, id))
}

/// What a rule that was just made does, and how to end it.
pub(crate) fn rule_line(approval: &Approval) -> Line {
    let id = single_line(&approval.rule_id);
    Line::from(sanitized!("rule {}: such calls ask no more; `talon approval revoke {}` ends that", id, id))
}

/// The reply to an approval question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ApprovalReply {
    Approve,
    /// With a rule for this call in the session, or always.
    ApproveSession,
    ApproveAlways,
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
            ("s" | "session", "") => Self::ApproveSession,
            ("a" | "always", "") => Self::ApproveAlways,
            ("" | "n" | "no", reason) => {
                Self::Deny(reason[..reason.floor_char_boundary(MAX_REASON_BYTES)].to_owned())
            }
            ("l" | "later", "") => Self::Later,
            _ => Self::Unclear,
        }
    }
}

/// The reply to a question of the model.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum QuestionReply {
    Answer(String),
    /// The model is to decide.
    Decline,
    /// No answer for now.
    Later,
}

impl QuestionReply {
    /// Parses an answer: the number of a suggested one, any text, nothing, or later.
    pub(crate) fn parse(line: &str, choices: &[String]) -> Self {
        let line = line.trim();
        let choice = line.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
        match (line, choice) {
            ("", _) => Self::Decline,
            ("later", _) => Self::Later,
            (_, Some(choice)) => Self::Answer(choice.clone()),
            (line, None) => Self::Answer(line.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: AGENT-85
    #[test]
    fn a_question_is_answered_by_a_number_or_by_any_text() {
        let choices = ["red".to_owned(), "blue".to_owned()];
        let answer = |text: &str| QuestionReply::Answer(text.to_owned());
        assert_eq!(QuestionReply::parse("2\n", &choices), answer("blue"));
        assert_eq!(QuestionReply::parse("3", &choices), answer("3"));
        assert_eq!(QuestionReply::parse("0", &choices), answer("0"));
        assert_eq!(QuestionReply::parse(" the green one ", &choices), answer("the green one"));
        assert_eq!(QuestionReply::parse("", &choices), QuestionReply::Decline);
        assert_eq!(QuestionReply::parse("later", &choices), QuestionReply::Later);
    }

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
        assert_eq!(ApprovalReply::parse("s"), ApprovalReply::ApproveSession);
        assert_eq!(ApprovalReply::parse("Always"), ApprovalReply::ApproveAlways);
        for line in ["yes please", "ok", "why?", "yy", "always please", "session 1"] {
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
