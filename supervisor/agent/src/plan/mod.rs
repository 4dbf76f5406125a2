//! The plan of a session: what is to be done, in order. A model writes it and keeps it up to date, and people change it.
//!
//! | file | content |
//! |---|---|
//! | `steps` | the steps, with their limits, as text and on the wire |
//! | `change` | the changes of a plan, as a pure function |
//! | `store_plan` | the plan in the metadata of its session |
//!
//! What a person changed is not written over by a model that has not seen it.

mod change;
mod steps;
mod store_plan;

pub use change::{Plan, PlanChange, PlanError};
pub use steps::{MAX_STEP_BYTES, MAX_STEPS, PlanStep, StepError, StepState, checked_steps};
pub use store_plan::{METADATA_KEY, PlanRegistry, SessionPlan, StorePlan, plan_of};

#[cfg(test)]
mod tests;
