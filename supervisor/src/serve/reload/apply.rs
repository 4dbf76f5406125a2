//! Carries out a plan: all plugins concurrently, so that a failure does not delay the others.

use futures_util::future::join_all;
use talon_plugin::{IfDown, State};

use super::answer::Change;
use super::plan::{Plan, Step, What};
use super::{Parts, Reloader};
use crate::serve::discover;

impl Reloader {
    /// The outcome for each plugin of the plan.
    pub(super) async fn carry_out(&self, plan: Plan) -> Vec<Change> {
        discover::tell_refused(&plan.refused, &self.parts().events);
        join_all(plan.steps.into_iter().map(|step| self.step(step))).await
    }

    async fn step(&self, step: Step) -> Change {
        let change = Change::planned(&step);
        let Parts { registry, .. } = self.parts();
        match step.what {
            What::Add(spec) => match registry.register(*spec) {
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
            What::Remove => {
                registry.deregister(&step.plugin).await;
                change
            }
            What::Replace(spec) => match registry.replace(*spec, IfDown::Leave).await {
                Ok(_) => change,
                Err(error) => change.instead("kept", error),
            },
            What::Change(Some(spec)) => {
                // Another reload of the same plugin may have come first, with the same outcome.
                if !registry.adjust(*spec).await {
                    return change.instead("kept", "it was replaced or removed meanwhile; reload once more");
                }
                change
            }
            What::Change(None) => change,
            What::Refuse => {
                registry.not_replaced(&step.plugin, &change.reason);
                change
            }
        }
    }
}
