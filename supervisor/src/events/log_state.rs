//! A log as its subscribers see it.

use talon_event_log::EventReader;

/// The log, as subscribers see it.
#[derive(Clone, Default)]
pub(super) struct LogState {
    /// `None` while the log is not open.
    pub(super) reader: Option<EventReader>,
    /// Why it is not, or why nothing can be written to it.
    pub(super) problem: Option<String>,
}
