//! The agent: an explicit state machine that lets a model use guarded tools.
//!
//! The deciding code is pure: no IO, no clock, and only typed errors. A driver performs the decisions and reports
//! facts.
//!
//! Pure:
//!
//! - [`machine`]: states, events, the table of transitions, and [`machine::Turn`], which takes facts
//! - [`loop_context`]: the context of a turn; [`budget`] and [`progress`] judge it
//! - [`answer`]: whether a final answer is valid
//! - [`tools`]: the tools offered to a model, its calls, and their results
//! - [`context`]: what a model sees of a session, in tokens
//! - [`prompt`]: the system prompt
//!
//! With IO:
//!
//! - [`driver`]: performs effects, and defines the traits for everything outside
//! - [`compress`]: the running summary
//! - [`door`], [`journal`], [`approval`], [`recall`], [`subagent`]: implementations of these traits
//! - [`workspace`]: reads the person's files for the prompt
//! - [`run`]: the process, with the registry of turns, the service for clients, [`costs`] and [`metrics`]

pub mod answer;
pub mod approval;
pub mod budget;
pub mod compress;
pub mod context;
pub mod costs;
pub mod driver;
pub mod host_client;
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
