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

pub mod answer;
pub mod budget;
pub mod context;
pub mod loop_context;
pub mod machine;
pub mod progress;
pub mod prompt;
pub mod tools;
