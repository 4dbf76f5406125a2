//! A plan for people.

use anstyle::{AnsiColor, Style};
use talon_proto::agent::{Plan, PlanStep};
use talon_sanitize::{Sanitized, sanitized};

use crate::client::agent::formatting::single_line;
use crate::line::Line;

const HEAD: Style = AnsiColor::Cyan.on_default();
const DONE: Style = AnsiColor::Green.on_default();
const ACTIVE: Style = AnsiColor::Yellow.on_default();

/// The plan with its head; `words`: in place of symbols.
pub(in crate::client::agent) fn plan_lines(plan: &Plan, words: bool) -> Vec<Line> {
    if plan.steps.is_empty() {
        return vec![Line::styled(HEAD, "plan").and(": none")];
    }
    let done = plan.steps.iter().filter(|step| step.state == "done").count();
    let mut about = vec![sanitized!("{} of {} done", done, plan.steps.len())];
    if plan.approved {
        about.push("approved".into());
    }
    let about = sanitized!(" ({})", Sanitized::join(about, ", "));
    let head = Line::styled(HEAD, "plan").and(about);
    std::iter::once(head).chain(step_lines(&plan.steps, words)).collect()
}

/// Each step with its number and state.
pub(in crate::client::agent) fn step_lines(steps: &[PlanStep], words: bool) -> Vec<Line> {
    let width = steps.len().to_string().len();
    let step = |(at, step): (usize, &PlanStep)| {
        let number = sanitized!("  {}. ", single_line(&format!("{:>width$}", at + 1)));
        let (style, mark) = match (step.state.as_str(), words) {
            ("done", true) => (DONE, "done: "),
            ("done", false) => (DONE, "✓ "),
            ("active", true) => (ACTIVE, "in work: "),
            ("active", false) => (ACTIVE, "▸ "),
            (_, true) => (Style::new(), ""),
            (_, false) => (Style::new(), "  "),
        };
        Line::from(number).and_styled(style, mark).and(single_line(&step.text))
    };
    steps.iter().enumerate().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(plan: &Plan, words: bool) -> String {
        plan_lines(plan, words).iter().map(|line| line.render(false) + "\n").collect()
    }

    // Promises: CLI-81
    #[test]
    fn each_step_has_its_number_and_its_state() {
        let step = |text: &str, state: &str| PlanStep { text: text.into(), state: state.into() };
        let steps = vec![step("look", "done"), step("write\u{1b}[2J", "active"), step("tell", "open")];
        let plan = Plan { steps, revision: 3, approved: true, changed_by: "person".into() };
        assert_eq!(
            shown(&plan, false),
            "plan (1 of 3 done, approved)\n  1. ✓ look\n  2. ▸ write␛[2J\n  3.   tell\n"
        );
        assert_eq!(
            shown(&plan, true).replace('␛', "ESC"),
            "plan (1 of 3 done, approved)\n  1. done: look\n  2. in work: writeESC[2J\n  3. tell\n"
        );
        assert_eq!(shown(&Plan::default(), true), "plan: none\n");
    }
}
