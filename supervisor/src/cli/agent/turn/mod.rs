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
mod flow;
mod follow;
mod render;
mod screen;
mod told;
mod typed;

pub(super) use follow::{How, follow};
pub(super) use render::Wanted;
pub(super) use render::footer;
pub(super) use told::{Collected, End, Stop, Told};
pub(super) use typed::{Typed, forget};
