//! `talon schedule list`, `next`, `run`, `pause`, `resume`, `accept`, `reject` and `history`.

mod change;
mod decide;
mod history;
mod list;

pub(crate) use change::{PauseArgs, ResumeArgs, RunArgs};
pub(crate) use decide::{AcceptArgs, RejectArgs};
pub(crate) use history::HistoryArgs;
pub(crate) use list::{ListArgs, NextArgs};
