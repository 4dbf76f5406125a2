//! Runs one turn for `ask` and `chat`.
//!
//! | module | contents | pure |
//! |---|---|---|
//! | `stream_sanitizer` | sanitizes streamed text without waiting for its end | yes |
//! | `render` | how a chunk is shown | yes |
//! | `approval` | renders a pending call, parses the reply | yes |
//! | `outcome` | what is recorded of a turn | yes |
//! | `screen` | writes to the terminal | |
//! | `line_input` | reads a line from the terminal without blocking the turn | |
//! | `turn_follower` | all of it together | |

pub(super) mod approval;
mod line_input;
mod outcome;
mod render;
mod screen;
mod stream_sanitizer;
mod turn_follower;

pub(super) use line_input::{LineInput, discard_pending_input};
#[cfg(test)]
pub(super) use outcome::ToolCallRecord;
pub(super) use outcome::{StopReason, TurnEnd, TurnOutcome, TurnRecord};
pub(super) use render::DisplayFilter;
pub(super) use render::footer;
pub(super) use turn_follower::{FollowOptions, follow};
