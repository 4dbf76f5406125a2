//! Parses `/plan`.

use talon_sanitize::{Raw, Sanitized};

use crate::client::agent::plan::PlanEdit;

/// What follows `/plan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PlanCommand {
    Show,
    /// A message that a plan is written for first.
    Ask(String),
    /// The plan that waits is carried out; or, where none waits, the model is asked to go on with it.
    Approve,
    Edit(PlanEdit),
}

impl PlanCommand {
    pub(super) fn parse(rest: &str) -> Result<Self, Sanitized> {
        let (word, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        match (word, text.trim()) {
            ("", _) => Ok(Self::Show),
            ("approve", "") => Ok(Self::Approve),
            ("ask", text) if !text.is_empty() => Ok(Self::Ask(text.to_owned())),
            ("ask", _) => Err("write what is to be planned, as in /plan ask Rename the module".into()),
            _ => PlanEdit::parse(rest).map(Self::Edit).map_err(|why| Raw::from(&why).line()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-81
    #[test]
    fn a_plan_is_shown_changed_approved_or_asked_for() {
        for (rest, command) in [
            ("", PlanCommand::Show),
            ("approve", PlanCommand::Approve),
            ("ask Rename it", PlanCommand::Ask("Rename it".to_owned())),
            ("drop 1 2", PlanCommand::Edit(PlanEdit::Drop(vec![1, 2]))),
            ("add approve", PlanCommand::Edit(PlanEdit::Add("approve".to_owned()))),
        ] {
            assert_eq!(PlanCommand::parse(rest), Ok(command), "{rest}");
        }
        for rest in ["ask", "approve it", "do it", "drop"] {
            assert!(PlanCommand::parse(rest).is_err(), "{rest}");
        }
    }
}
