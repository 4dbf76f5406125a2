//! `talon schedule list`, `next`, `run`, `pause`, `resume` and `history`.

mod change;
mod history;
mod list;

pub(crate) use change::{PauseArgs, ResumeArgs, RunArgs};
pub(crate) use history::HistoryArgs;
pub(crate) use list::{ListArgs, NextArgs};
