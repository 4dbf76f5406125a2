//! Compares a turn's calls with workflows.

use talon_store::Workflow;
use talon_store::limits::MAX_STEPS;

use crate::driver::ShownWorkflow;

/// The outcome of a workflow that worked.
pub(super) const SUCCESS: &str = "success";
/// The outcome of a workflow that failed the last time.
pub(super) const FAILURE: &str = "failure";

/// The shortest workflow worth storing: a single call is what its tool's description says.
const MIN_STEPS: usize = 2;
/// Plugins whose calls belong to no task: the supervisor's own, and the agent's memory.
const NO_STEPS: [&str; 2] = ["talon", super::MEMORY];

/// The steps of a workflow: successful calls of plugins, without immediate repetitions. `None` if there are
/// too few.
pub(super) fn steps(calls: &[(String, String, bool)]) -> Option<Vec<(String, String)>> {
    let mut steps: Vec<(String, String)> = calls
        .iter()
        .filter(|(plugin, _, succeeded)| *succeeded && !NO_STEPS.contains(&plugin.as_str()))
        .map(|(plugin, action, _)| (plugin.clone(), action.clone()))
        .collect();
    steps.dedup();
    (MIN_STEPS..=MAX_STEPS).contains(&steps.len()).then_some(steps)
}

/// The workflow that a failed run followed: the one with the most common steps, if those are most of the run.
pub(super) fn followed_workflow<'f>(
    calls: &[(String, String, bool)],
    shown: &'f [ShownWorkflow],
) -> Option<&'f ShownWorkflow> {
    let mut made: Vec<(&str, &str)> = calls
        .iter()
        .filter(|(plugin, ..)| !NO_STEPS.contains(&plugin.as_str()))
        .map(|(plugin, action, _)| (plugin.as_str(), action.as_str()))
        .collect();
    made.dedup();
    // A run in circles repeats itself; its beginning shows what it followed.
    made.truncate(MAX_STEPS);
    let common = |one: &&ShownWorkflow| common_steps(&made, &one.steps);
    shown.iter().filter(|one| common(one) > 0 && common(one) * 2 >= made.len()).max_by_key(common)
}

/// The length of the longest common subsequence of steps.
fn common_steps(made: &[(&str, &str)], steps: &[(String, String)]) -> usize {
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
pub(super) fn steps_of(workflow: &Workflow) -> Vec<(String, String)> {
    workflow.steps.iter().map(|step| (step.plugin.clone(), step.action.clone())).collect()
}
