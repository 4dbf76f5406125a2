//! The events that a log's owner is notified of.

/// An event that the log's owner is notified of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogEvent {
    /// The log works, and something unexpected was found when it was opened.
    Finding(String),
    /// Writing to the log fails.
    Failing(String),
    /// Records are being lost: the disk does not keep up.
    Dropping,
    /// The file that was being written was removed, replaced or shortened. The log continues in another file.
    Damaged(String),
    /// The log was closed without the last records, which could not be written.
    Abandoned {
        /// Their number. They are lost.
        records: u64,
    },
    /// The log works again, with this many records missing.
    Recovered {
        /// The records lost since it failed.
        lost: u64,
    },
}
