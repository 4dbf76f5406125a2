//! Runs jobs at planned times.
//!
//! ```text
//! configuration ─► JobTable ──────┐               talon schedule run, pause, resume ─► store
//!                                  ▼
//!   clock ─► Scheduler::tick ─ decide ─► plan ─► store: occurrences, each before it begins
//!                    │
//!                    └─ steps ─► claim ─► perform ─► JobTarget ─► end of the occurrence
//! ```
//!
//! - `plan`: from a decision to occurrences; `steps`: what to do about occurrences that are not finished; both
//!   pure
//! - `scheduler`: looks at the clock and the store, and begins what is due
//! - `perform`: one occurrence, with its deadline and its lease
//! - `deliver`: answers to notification entries; `update`: what the event bus is told
//! - `target`: what runs; `ask`: a question to the agent; `action`: a call of an action in the role `scheduled_task`
//!
//! An occurrence is a row in the store, unique by job and planned time. A run is claimed for
//! [`LEASE`](perform::LEASE), and the claim is renewed while it runs. What a target has begun it finds again: a
//! question is a turn, whose number is stored before it is asked, so that a run that was interrupted goes on
//! with its turn, or takes over how it ended. Of an action's call the row says that it is made, before it is: one
//! that was interrupted has failed, since nobody knows what it did.

mod action;
mod ask;
mod deliver;
mod perform;
mod plan;
mod run_id;
mod scheduler;
mod steps;
mod target;
mod timestamps;
mod update;

pub(crate) use action::{ActionHosts, ActionTarget};
pub(crate) use ask::AskTarget;
pub(crate) use scheduler::Scheduler;
pub(crate) use target::Targets;
pub(crate) use timestamps::{from_store, now, to_store};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
