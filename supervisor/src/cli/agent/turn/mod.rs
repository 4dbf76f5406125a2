//! One turn on its way, for `ask` and `chat`.
//!
//! | module | what | pure |
//! |---|---|---|
//! | `flow` | text that comes in pieces, made inert without waiting for its end | yes |
//! | `render` | what is shown of a chunk | yes |
//! | `approval` | a call that waits, as it will run, and what was answered | yes |
//! | `told` | what is kept of a turn until its end | yes |
//! | `screen` | where it is shown | |
//! | `typed` | a line from the terminal while other things go on | |
//! | `follow` | all of it together | |

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
