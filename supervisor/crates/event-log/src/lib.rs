//! A numbered log of events on the disk: bounded, and whole after a kill or a torn write.
//!
//! ```text
//! append ──► events-00000001780000000000.log   oldest, removed as a whole at the bound
//!            events-00000001780000001250.log
//!            events-00000001780000002500.log   the one that is written: synced before anybody reads of it
//!                                                     │
//!                      EventReader::page_after(number) ◄┘  pages in order; a hole is named
//! ```
//!
//! - Numbers count up by one and are never given twice: a log goes on after its last record, and a new one begins at a number
//!   that its owner takes from the clock.
//! - An event is given out only after it was synced. What a crash left half-written was given to nobody, and is cut off at the
//!   next opening.
//! - At the bound the oldest segment goes. A reader that had not come so far gets the range that is missing.
//!
//! Its own code, since the crates that exist number by byte offsets or keep no bound, and none of them names what is missing.
//!
//! | file | content |
//! |---|---|
//! | `record` | one record as bytes, and the search for whole records in damaged bytes |
//! | `directory` | the directory, its lock, and the names of its segments |
//! | `index` | where each event is, shared by the writer and its readers |
//! | `log` | opens, appends, acknowledges, drops what is over the bound |
//! | `reader` | reads pages |

mod directory;
mod index;
mod log;
mod reader;
mod record;

pub use directory::OpenError;
pub use log::{AcknowledgeError, AppendError, EventLog, MAX_SUBSCRIBERS, OpenedLog, Settings};
pub use reader::{EventReader, Page};
pub use record::MAX_EVENT_BYTES;
