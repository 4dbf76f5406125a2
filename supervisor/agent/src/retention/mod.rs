//! What becomes of sessions that are older than the operator wants: what is written of them, and what is said of it.
//!
//! | file | content |
//! |---|---|
//! | `export_directory` | the files that are written before, as `talon import` reads them |
//! | `log` | how far it is, for the status; removals, for the supervisor's audit log |
//!
//! A session is written, synced and renamed into place before it is deleted, so that a process that is killed in between leaves both,
//! and the next one writes it again and deletes it.

mod export_directory;
mod log;

pub(crate) use export_directory::{ExportError, ExportSource, ExportUsage};
pub(crate) use log::RetentionLog;
