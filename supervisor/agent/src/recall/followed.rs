//! What a turn did, against workflows.

use talon_store::Workflow;
use talon_store::limits::MAX_STEPS;

use crate::driver::Followed;

/// What came of a workflow that worked.
pub(super) const SUCCESS: &str = "success";
/// What came of one that did not, the last time.
pub(super) const FAILURE: &str = "failure";

/// The least that is worth remembering: one call is what its tool's description says.
const MIN_STEPS: usize = 2;
/// Tools that belong to no task: the supervisor's own, and the agent's memory.
const NO_STEPS: [&str; 2] = ["talon", super::MEMORY];

/// The calls that mattered: those that succeeded, of plugins, each once where it was made several times in a row. `None` if they make
/// no workflow.
pub(super) fn steps(calls: &[(String, String, bool)]) -> Option<Vec<(String, String)>> {
    let mut steps: Vec<(String, String)> = calls
        .iter()
        .filter(|(plugin, _, succeeded)| *succeeded && !NO_STEPS.contains(&plugin.as_str()))
        .map(|(plugin, action, _)| (plugin.clone(), action.clone()))
        .collect();
    steps.dedup();
    (MIN_STEPS..=MAX_STEPS).contains(&steps.len()).then_some(steps)
}

/// The workflow that a failed run followed: the one that it has most in common with, if that is most of what it did.
pub(super) fn followed<'f>(calls: &[(String, String, bool)], shown: &'f [Followed]) -> Option<&'f Followed> {
    let mut made: Vec<(&str, &str)> = calls
        .iter()
        .filter(|(plugin, ..)| !NO_STEPS.contains(&plugin.as_str()))
        .map(|(plugin, action, _)| (plugin.as_str(), action.as_str()))
        .collect();
    made.dedup();
    // A run that goes in circles repeats itself; its beginning says what it followed.
    made.truncate(MAX_STEPS);
    let common = |one: &&Followed| in_common(&made, &one.steps);
    shown.iter().filter(|one| common(one) > 0 && common(one) * 2 >= made.len()).max_by_key(common)
}

/// The longest sequence of steps that both have in this order.
fn in_common(made: &[(&str, &str)], steps: &[(String, String)]) -> usize {
    let mut row = vec![0_usize; steps.len() + 1];
    for call in made {
        let mut diagonal = 0;
        for (at, (plugin, action)) in steps.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] =
                if *call == (plugin.as_str(), action.as_str()) { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[steps.len()]
}

/// Plugin and action of each step.
pub(super) fn of(workflow: &Workflow) -> Vec<(String, String)> {
    workflow.steps.iter().map(|step| (step.plugin.clone(), step.action.clone())).collect()
}
