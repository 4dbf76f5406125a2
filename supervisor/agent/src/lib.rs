//! The agent: an explicit machine that lets a model use guarded tools.
//!
//! What decides is pure: no IO, no clock, nothing that can fail but by a typed error. A driver performs what is decided and
//! brings back facts.
//!
//! - [`machine`]: states, events, the one table of transitions, and [`machine::Turn`], which takes facts
//! - [`loop_context`]: what is known of a turn; [`budget`] and [`progress`] judge it
//! - [`answer`]: whether a final answer is what was asked for
//! - [`tools`]: what a model is offered, what it called, what came of it
//! - [`context`]: what of all that a model gets to see, in tokens
//! - [`prompt`]: what it is told beforehand
//!
//! What does it:
//!
//! - [`driver`]: performs effects; and the traits behind which everything outside stands
//! - [`compress`]: the running summary
//! - [`door`], [`journal`], [`approval`], [`recall`], [`subagent`]: who is behind them
//! - [`workspace`]: reads the person's files for the prompt
//! - [`run`]: the process; behind it who may run which turn, the service for clients, and what is counted: [`costs`], [`metrics`]

pub mod answer;
pub mod approval;
pub mod budget;
pub mod compress;
pub mod context;
pub mod costs;
pub mod door;
pub mod driver;
pub mod journal;
pub mod loop_context;
pub mod machine;
pub mod metrics;
pub mod progress;
pub mod prompt;
pub mod recall;
pub mod run;
mod serve;
pub mod subagent;
pub mod tools;
mod turns;
pub mod workspace;
