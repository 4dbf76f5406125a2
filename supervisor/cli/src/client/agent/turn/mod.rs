//! Runs one turn for `ask` and `chat`.
//!
//! | module | contents | pure |
//! |---|---|---|
//! | `terminal_stream` | text of a model for the terminal, piece by piece | yes |
//! | `markdown` | styles of a model's answer, as it streams | yes |
//! | `running_calls` | which calls run | yes |
//! | `render` | how a chunk is shown | yes |
//! | `approval` | renders a pending call, parses the reply | yes |
//! | `plan_question` | asks whether a plan is carried out, parses the reply | yes |
//! | `outcome` | what is recorded of a turn | yes |
//! | `screen` | writes to the terminal | |
//! | `typed_line` | what is typed while a turn runs | yes |
//! | `input_area` | the row where it is typed | |
//! | `typing_row` | when that row is open | |
//! | `line_input` | reads a line from the terminal without blocking the turn | |
//! | `turn_follower` | all of it together | |
//! | `questions` | what it asks the person | |

pub(super) mod approval;
mod call_output;
mod input_area;
mod line_input;
mod markdown;
mod outcome;
mod plan_question;
mod questions;
mod render;
pub(super) mod reply;
mod running_calls;
mod screen;
mod styles;
mod terminal_stream;
mod turn_follower;
mod typed_line;
mod typing_row;

pub(super) use line_input::{LineInput, discard_pending_input};
#[cfg(test)]
pub(super) use outcome::ToolCallRecord;
pub(super) use outcome::{StopReason, TurnEnd, TurnOutcome, TurnRecord};
pub(super) use render::DisplayFilter;
pub(super) use render::footer;
pub(super) use turn_follower::{FollowOptions, follow};
pub(super) use typed_line::TypedAhead;
