//! `talon config patch` and `history`: the configuration of a running supervisor.
//!
//! | module | contents |
//! |---|---|
//! | `patch` | changes keys |
//! | `history` | what was changed |
//! | `edits` | what the command line asks for, as edits of single keys |
//! | `key` | keys as people write them |

mod edits;
mod history;
mod key;
mod patch;

pub(crate) use history::HistoryArgs;
pub(crate) use patch::PatchArgs;
