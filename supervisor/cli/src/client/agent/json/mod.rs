//! The agent's messages as JSON. The keys are those of `proto/talon/agent/v1/agent.proto` and are stable.
//!
//! | module | contents |
//! |---|---|
//! | `records` | what the agent stores |
//! | `turn` | a turn: its chunks, and its outcome |
//! | `parts` | what is part of several messages |

mod parts;
mod records;
mod turn;

pub(super) use records::{approval, compacted, memory, message, model, provider, session};
pub(super) use turn::{chunk, result};

#[cfg(test)]
mod tests;
