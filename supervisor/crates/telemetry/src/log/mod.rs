//! The log of a process.
//!
//! Writing never holds up a call: lines go through a bounded queue to a thread of their own, and what does not fit
//! is counted and said. A closed stderr ends the log, not the process; so does a journal that takes nothing, for as long
//! as it does not.
//!
//! A line says what the spans around it say: each field of theirs is a field of the line.
//!
//! What plugins write is sanitized long before it gets here. Fields of an event are values of any type, though, so each
//! line is made inert once more where it is written, for whoever logs one day what nobody thought of.

mod filter;
mod format;
mod inert;
mod journal;
mod json;
mod layer;
mod line;
mod outlet;
mod writer;

pub(crate) use self::filter::filter;
pub use self::filter::{BadFilter, FILTER_VARIABLE};
pub use self::format::Format;
pub(crate) use self::layer::Lines;
pub(crate) use self::outlet::Outlet;
pub use self::writer::dropped;
pub(crate) use self::writer::{Flush, Writer, start};
