//! What plugins propose, checked and bounded.

use std::collections::BTreeMap;

use talon_extensions::Role;
use talon_proto::plugin::{Action, JobProposal};
use talon_sanitize::truncate;
use talon_schedule::{DeclaredJob, MAX_PROPOSALS, Proposal};
use talon_store::limits::MAX_DECLARED_PROPOSALS;
use talon_store::{DeclaredProposals, NewProposal};

use super::source::Declaration;

/// The longest reason that is shown.
const MAX_PROBLEM_BYTES: usize = 500;
/// The longest name of a wrong proposal that is shown.
const MAX_SHOWN_BYTES: usize = 64;

/// A proposal that cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidProposal {
    /// The plugin.
    pub(crate) plugin: String,
    /// The action.
    pub(crate) action: String,
    /// The job's id, as the plugin would have it; truncated.
    pub(crate) job: String,
    /// Why not, with what to do.
    pub(crate) problem: String,
}

/// What all plugins propose now.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Declared {
    /// The proposals by the jobs' ids.
    pub(super) proposals: BTreeMap<String, Proposal>,
    /// What is none.
    pub(super) invalid: Vec<InvalidProposal>,
    /// Plugins that there are and that have not declared anything yet.
    pub(super) silent: Vec<String>,
}

impl Declared {
    pub(super) fn of(declarations: Vec<Declaration>) -> Self {
        let mut declared = Self::default();
        for Declaration { plugin, actions } in declarations {
            match actions {
                None => declared.silent.push(plugin),
                Some(actions) => declared.add(&plugin, &actions),
            }
        }
        declared
    }

    fn add(&mut self, plugin: &str, actions: &[Action]) {
        let proposed =
            || actions.iter().flat_map(|action| action.proposed_jobs.iter().map(move |job| (action, job)));
        for (number, (action, job)) in proposed().take(MAX_PROPOSALS).enumerate() {
            let room = self.proposals.len() < MAX_DECLARED_PROPOSALS;
            match check(plugin, action, job) {
                _ if !room => {
                    self.reject(plugin, action, job, format!("all plugins together propose more than {MAX_DECLARED_PROPOSALS} jobs: remove some plugins"));
                }
                Err(problem) => self.reject(plugin, action, job, problem),
                Ok(proposal) if self.proposals.contains_key(proposal.id.as_str()) => {
                    let problem = format!(
                        "the plugin proposes two jobs of this name (number {}): let its author give each a name",
                        number + 1
                    );
                    self.reject(plugin, action, job, problem);
                }
                Ok(proposal) => {
                    let _new = self.proposals.insert(proposal.id.to_string(), proposal);
                }
            }
        }
        let all = proposed().count();
        if all > MAX_PROPOSALS {
            self.invalid.push(InvalidProposal {
                plugin: plugin.to_owned(),
                action: String::new(),
                job: format!("{plugin}.*"),
                problem: format!(
                    "the plugin proposes {all} jobs, and {MAX_PROPOSALS} are the most: the others are left out; write those that are \
                     needed under extensions.schedule"
                ),
            });
        }
    }

    fn reject(&mut self, plugin: &str, action: &Action, job: &JobProposal, problem: String) {
        let name = if job.name.is_empty() { &action.name } else { &job.name };
        self.invalid.push(InvalidProposal {
            plugin: plugin.to_owned(),
            action: format!("{plugin}.{}", action.name),
            job: format!("{plugin}.{}", truncate(name, MAX_SHOWN_BYTES, "…")),
            problem: truncate(&problem, MAX_PROBLEM_BYTES, "…").into_owned(),
        });
    }

    /// What the store is told.
    pub(super) fn for_store(&self) -> DeclaredProposals {
        let new = |proposal: &Proposal| NewProposal {
            job: proposal.id.to_string(),
            digest: proposal.digest(),
            plugin: proposal.plugin().to_owned(),
            proposal: proposal.to_json(),
        };
        DeclaredProposals {
            proposals: self.proposals.values().map(new).collect(),
            silent: self.silent.clone(),
        }
    }

    /// Why an accepted job will fail: its action proposes no job of this name any more.
    pub(super) fn problem_of(&self, job: &str, action: &str) -> Option<String> {
        let plugin = action.split('.').next().unwrap_or_default();
        let is_proposed = self.proposals.get(job).is_some_and(|proposal| proposal.action == action);
        if is_proposed || self.silent.iter().any(|silent| silent == plugin) {
            return None;
        }
        Some(withdrawn(job, action))
    }
}

/// Why an accepted job cannot run whose plugin proposes it no more.
pub(crate) fn withdrawn(job: &str, action: &str) -> String {
    format!(
        "{action} does not propose this job any more: end it with `talon schedule reject {job}`, or write it under \
         extensions.schedule"
    )
}

fn check(plugin: &str, action: &Action, job: &JobProposal) -> Result<Proposal, String> {
    if !action.roles.iter().any(|role| role == Role::ScheduledTask.as_str()) {
        return Err(format!(
            "the action {} does not declare the role {}: let its author add it",
            action.name,
            Role::ScheduledTask.as_str()
        ));
    }
    let JobProposal { name, cron, every, timezone, arguments_json } = job.clone();
    let declared = DeclaredJob { name, cron, every, timezone, arguments_json };
    Proposal::check(plugin, &action.name, &declared).map_err(|error| error.to_string())
}

#[cfg(test)]
#[path = "declared_tests.rs"]
mod tests;
