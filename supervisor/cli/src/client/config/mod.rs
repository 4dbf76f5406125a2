//! `talon config patch` and `history`: the configuration of a running supervisor.
//!
//! | module | contents |
//! |---|---|
//! | `patch` | changes keys |
//! | `history` | what was changed |
//! | `edits` | what the command line asks for, as edits of single keys |
//! | `values` | values as JSON, and as messages have them |

mod edits;
mod history;
mod patch;
mod values;

pub(crate) use history::HistoryArgs;
pub(crate) use patch::PatchArgs;
