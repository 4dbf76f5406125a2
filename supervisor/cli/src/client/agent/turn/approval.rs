//! Renders a call that waits for an approval, and parses the reply.

use std::time::{Duration, SystemTime};

use anstyle::{AnsiColor, Style};
use talon_proto::agent::Approval;
use talon_sanitize::{Raw, sanitized};

use super::plan_question;
use crate::client::agent::formatting::{count, single_line};
use crate::client::form_filler::FormFiller;
use crate::line::Line;
use crate::show;
use crate::terminal_style::uses_words;

/// The most bytes of arguments that are shown inline before the question, about what a person can read on a
/// terminal. Longer ones are left to `talon approval show`.
pub(crate) const MAX_INLINE_BYTES: usize = 16 << 10;

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
    if let Some(plan) = &approval.plan {
        let head = Line::styled(MARK, "plan");
        let mut lines = plan_question::lines(&approval.id, head, plan, uses_words());
        lines.extend(expiry_line(approval, now));
        return lines;
    }
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
    if approval.plan.is_some() {
        return Line::from(sanitized!(
            "  decide with `talon approval approve {}` or `talon approval deny {}`; change it with `talon session plan {}`",
            id,
            id,
            single_line(&approval.session_id)
        ));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
