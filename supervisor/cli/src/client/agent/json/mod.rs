//! The agent's messages as JSON. The keys are those of `proto/talon/agent/v1/agent.proto` and are stable;
//! what is not here is printed as [`fields`](crate::json::fields) has it.
//!
//! | module | contents |
//! |---|---|
//! | `records` | sessions and their messages |
//! | `turn` | a turn: its chunks, and its outcome |
//! | `parts` | what is part of several messages |

mod parts;
mod records;
mod turn;

pub(super) use records::{compacted, message, session};
pub(super) use turn::{chunk, result};

#[cfg(test)]
mod tests;
