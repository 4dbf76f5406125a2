//! Carries out a plan: all plugins concurrently, so that a failure does not delay the others.

use futures_util::future::join_all;
use talon_plugin::{DownPolicy, State};

use super::outcome::PluginOutcome;
use super::plan::{Plan, PlanStep, StepAction};
use super::reloader::{Reloader, ReloaderParts};
use crate::discover;

impl Reloader {
    /// The outcome for each plugin of the plan.
    pub(super) async fn carry_out(&self, plan: Plan) -> Vec<PluginOutcome> {
        discover::report_refused(&plan.refused, &self.parts().events);
        let mut outcomes = join_all(plan.steps.into_iter().map(|step| self.step(step))).await;
        outcomes.extend(plan.not_started.iter().map(PluginOutcome::not_started));
        outcomes
    }

    async fn step(&self, step: PlanStep) -> PluginOutcome {
        let change = PluginOutcome::planned(&step);
        let ReloaderParts { registry, .. } = self.parts();
        match step.action {
            StepAction::Add(spec) => match registry.register(*spec) {
                Ok(plugin) => {
                    plugin.settled().await;
                    let snapshot = plugin.snapshot();
                    match (snapshot.state, snapshot.reason) {
                        (State::Ready | State::Stopped | State::Discovered, _) | (_, None) => change,
                        (state, Some(reason)) => change.instead("added", format_args!("{state}: {reason}")),
                    }
                }
                Err(error) => change.instead("refused", error),
            },
            StepAction::Remove => {
                registry.deregister(&step.plugin).await;
                change
            }
            StepAction::Replace(spec) => match registry.replace(*spec, DownPolicy::StayDown).await {
                Ok(_) => change,
                Err(error) => change.instead("kept", error),
            },
            StepAction::Change(Some(spec)) => {
                // Another reload of the same plugin may have come first, with the same outcome.
                if !registry.adjust(*spec).await {
                    return change.instead("kept", "it was replaced or removed meanwhile; reload once more");
                }
                change
            }
            StepAction::Change(None) => change,
            StepAction::Refuse => {
                registry.record_refused_replacement(&step.plugin, &change.reason);
                change
            }
        }
    }
}
