//! The plan of a reload: pure, so that a dry run reports what a real one would do.

use std::collections::{BTreeMap, BTreeSet};

use talon_plugin_config::PluginName;
use talon_plugin_config::discover::{RejectedPlugin, ScanResult};
use talon_plugin_config::spec::PluginSpec;

use crate::config::Config;
use crate::discover::is_about;

/// The steps to take.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<PlanStep>,
    /// The number of unaffected plugins.
    pub(super) left: usize,
    /// Refused plugins.
    pub(super) refused: Vec<RejectedPlugin>,
    /// Those of them that do not run: new entries, and files that were refused before.
    pub(super) not_started: Vec<RejectedPlugin>,
}

impl Plan {
    /// The plugins that it removes.
    pub(super) fn removed(&self) -> Vec<&str> {
        let removes = |step: &&PlanStep| matches!(step.action, StepAction::Remove);
        self.steps.iter().filter(removes).map(|step| step.plugin.as_str()).collect()
    }
}

/// The step for one plugin.
#[derive(Debug)]
pub(super) struct PlanStep {
    pub(super) plugin: PluginName,
    pub(super) action: StepAction,
    /// What differs.
    pub(super) why: String,
}

#[derive(Debug)]
pub(super) enum StepAction {
    Add(Box<PluginSpec>),
    Remove,
    /// By new processes, started beside the old ones.
    Replace(Box<PluginSpec>),
    /// Without a new process; `None` if only its guard stack changes.
    Change(Option<Box<PluginSpec>>),
    /// The new version does not pass its checks, so the running one stays.
    Refuse,
}

/// Compares the plugins `registered` under `running` with those `found` under `wanted`.
pub(super) fn plan(
    running: &Config,
    wanted: &Config,
    registered: &[std::sync::Arc<PluginSpec>],
    found: ScanResult,
) -> Plan {
    let ScanResult { plugins, refused } = found;
    let mut found: BTreeMap<PluginName, PluginSpec> = BTreeMap::new();
    for spec in plugins {
        // Of two with one name, the configured one has precedence, as at the start.
        found.entry(spec.name.clone()).or_insert(spec);
    }
    let mut plan = Plan { refused, ..Plan::default() };
    let lost_dir = lost_dir(wanted, &plan.refused);
    let known: BTreeSet<PluginName> = registered.iter().map(|spec| spec.name.clone()).collect();
    for old in registered {
        let name = &old.name;
        let step = match found.remove(name) {
            Some(new) => compare(running, wanted, old, new),
            None => match plan.refused.iter().find(|refused| is_about(refused, name)) {
                Some(refused) => Some((StepAction::Refuse, refused.reason.clone())),
                None if lost_dir && !is_configured(running, name) => {
                    Some((StepAction::Refuse, "plugin_dir cannot be read, so it stays as it is".to_owned()))
                }
                None => Some((StepAction::Remove, "it is no longer there".to_owned())),
            },
        };
        match step {
            Some((what, why)) => plan.steps.push(PlanStep { plugin: name.clone(), action: what, why }),
            None => plan.left += 1,
        }
    }
    for (plugin, spec) in found.into_iter().filter(|(name, _)| !known.contains(name)) {
        let why = spec.source.clone();
        plan.steps.push(PlanStep { plugin, action: StepAction::Add(Box::new(spec)), why });
    }
    plan.steps.sort_by(|a, b| a.plugin.cmp(&b.plugin));
    let runs = |refused: &RejectedPlugin| known.iter().any(|name| is_about(refused, name));
    plan.not_started = plan
        .refused
        .iter()
        .filter(|one| Some(&one.path) != wanted.plugins.tools.plugin_dir.as_ref() && !runs(one))
        .cloned()
        .collect();
    plan
}

fn compare(
    running: &Config,
    wanted: &Config,
    old: &PluginSpec,
    new: PluginSpec,
) -> Option<(StepAction, String)> {
    let name = new.name.as_str();
    let mut differs = old.changed_settings(&new);
    let same_quota = running.state_quota(name) == wanted.state_quota(name);
    if !same_quota {
        differs.push("state_quota");
    }
    if !old.runs_same_process(&new) || !same_quota {
        return Some((StepAction::Replace(Box::new(new)), differs.join(", ")));
    }
    if !differs.is_empty() {
        return Some((StepAction::Change(Some(Box::new(new))), differs.join(", ")));
    }
    // Whoever has a socket keeps it, and the agent hears of what holds there from now on.
    if running.model_grant(name) != wanted.model_grant(name) {
        return Some((StepAction::Change(None), "models".to_owned()));
    }
    let same_guard = running.call_policy(name, old) == wanted.call_policy(name, &new);
    (!same_guard).then(|| (StepAction::Change(None), "guard".to_owned()))
}

/// Whether there should be a plugin directory but it cannot be read, be it the one that was or another: then
/// it is not known which plugins are wanted.
fn lost_dir(wanted: &Config, refused: &[RejectedPlugin]) -> bool {
    let dir = &wanted.plugins.tools.plugin_dir;
    refused.iter().any(|refused| dir.as_ref() == Some(&refused.path))
}

fn is_configured(config: &Config, name: &PluginName) -> bool {
    config.plugins.tools.plugins.contains_key(name.as_str())
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
