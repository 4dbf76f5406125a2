//! Runs jobs at planned times.
//!
//! ```text
//! configuration ─► ConfiguredJobs ─┐               talon schedule run, pause, resume ─► store
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
//! - `target`: what runs; `ask`: a question to the agent
//!
//! An occurrence is a row in the store, unique by job and planned time. A run is claimed for
//! [`LEASE`](perform::LEASE), and the claim is renewed while it runs. What a target has begun it finds again: a
//! question is a turn, whose number is stored before it is asked, so that a run that was interrupted goes on
//! with its turn, or takes over how it ended.

mod ask;
mod perform;
mod plan;
mod scheduler;
mod steps;
mod target;
mod timestamps;

pub(crate) use ask::AskTarget;
pub(crate) use scheduler::Scheduler;
pub(crate) use timestamps::{from_store, now, to_store};

#[cfg(test)]
mod tests;
