//! The question whether a plan is carried out, and what a person replies to it.

use talon_proto::agent::{Approval, Plan};
use talon_sanitize::sanitized;

use super::reply::ApprovalReply;
use crate::client::agent::formatting::single_line;
use crate::client::agent::plan::{PlanEdit, WORDS, step_lines};
use crate::line::Line;

/// The reply to the question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PlanReply {
    Approve,
    /// With a reason for the model, possibly empty.
    Deny(String),
    /// The steps change, and the question is asked again.
    Edit(PlanEdit),
    /// No decision for now.
    Later,
    /// Not understood: the question stays open.
    Unclear,
}

impl PlanReply {
    /// Parses yes, no, no with a reason, later, or words that change the plan. Only an explicit yes approves.
    pub(crate) fn parse(line: &str) -> Self {
        match ApprovalReply::parse(line) {
            ApprovalReply::Approve => Self::Approve,
            ApprovalReply::Deny(reason) => Self::Deny(reason),
            ApprovalReply::Later => Self::Later,
            // Of a plan there are no rules.
            ApprovalReply::ApproveSession | ApprovalReply::ApproveAlways => Self::Unclear,
            ApprovalReply::Unclear => PlanEdit::parse(line).map_or(Self::Unclear, Self::Edit),
        }
    }
}

/// The plan that waits.
pub(super) fn lines(id: &str, head: Line, plan: &Plan, words: bool) -> Vec<Line> {
    let head = head.and(sanitized!(" {}: the model's plan", single_line(id)));
    std::iter::once(head).chain(step_lines(&plan.steps, words)).collect()
}

/// The question, after the plan.
pub(super) const PROMPT: &str = "Carry out this plan? [y/N/no REASON/later, or a change such as drop 2]";

/// What became of the question.
pub(super) fn outcome(approval: &Approval) -> Line {
    // What the person wants otherwise is an answer, too.
    let state = if approval.answer == "approve" { "approved" } else { &approval.state };
    Line::from(sanitized!("plan {}: {}", single_line(&approval.id), single_line(state)))
}

/// What is said after a reply that is none.
pub(super) fn help() -> [Line; 2] {
    [
        "y carries it out as it stands; n does not, `no REASON` tells the model why, later decides nothing;"
            .into(),
        sanitized!("or change it: {}", WORDS).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-81
    #[test]
    fn only_a_plain_yes_approves_a_plan_and_words_change_it() {
        for (line, reply) in [
            ("y", PlanReply::Approve),
            ("", PlanReply::Deny(String::new())),
            ("no, tests first", PlanReply::Deny("tests first".to_owned())),
            ("later", PlanReply::Later),
            ("drop 2", PlanReply::Edit(PlanEdit::Drop(vec![2]))),
            ("add y", PlanReply::Edit(PlanEdit::Add("y".to_owned()))),
            ("always", PlanReply::Unclear),
            ("s", PlanReply::Unclear),
            ("yes please", PlanReply::Unclear),
            ("drop", PlanReply::Unclear),
        ] {
            assert_eq!(PlanReply::parse(line), reply, "{line}");
        }
    }
}
