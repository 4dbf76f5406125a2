//! Commands of shells: what the integration of `talon shell-init` sends, and history files.

mod history;
mod listener;
mod message;
mod report;

pub(crate) use history::History;
pub(crate) use listener::{ListenError, start};
pub(crate) use report::{ReportArgs, report};
