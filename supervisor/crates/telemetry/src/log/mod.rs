//! The log of a process.
//!
//! Logging never blocks a call: lines go through a bounded queue to a writer thread, and dropped lines are
//! counted and reported. If stderr is closed, the log ends, but the process does not. The same holds while
//! the journal accepts nothing.
//!
//! Each field of the spans around a line is a field of the line.
//!
//! Output of plugins is sanitized long before it gets here. But the fields of an event may be values of any
//! type, so each line is neutralized once more when it is written, as a safeguard against future log
//! statements.

mod filter;
mod format;
mod journal;
mod json;
mod layer;
mod line;
mod neutralize;
mod output;
mod queue_entry;
mod writer;

pub(crate) use self::filter::filter;
pub use self::filter::{FILTER_VARIABLE, FilterError};
pub use self::format::Format;
pub(crate) use self::layer::LineLayer;
pub(crate) use self::output::LogOutput;
pub use self::writer::dropped;
pub(crate) use self::writer::{FlushGuard, Writer, start};
