//! An append-only, hash-chained, rotated log of calls and operations, and its verification.
//!
//! ```text
//! calls ──record()──► queue (bounded, counted) ──► one of the calls, ──► audit-000000000007.jsonl
//!                       │                          or the thread           each line: …,"prev":<hash before>,"hash":<own>}
//!                       │ full for too long
//!                       └─► lost: counted, and a record in their place says how many
//! ```
//!
//! Each line is one JSON object. A line's `hash` covers its bytes up to that field, and `prev` is the hash of
//! the line before, so each hash stands for everything before it. A process that can write the files can also
//! rewrite all of them: only a hash noted elsewhere shows that, see [`head`] and [`VerifyRequest::anchor`].
//!
//! | file | content |
//! |---|---|
//! | [`record`] | what is recorded, and its size limits |
//! | `line` | encodes a record as a line, and parses it |
//! | `directory`, `tail` | the files, and where an earlier process stopped |
//! | `settings` | how a log is kept |
//! | `writer` | opens and closes the log, appends records, closes a full file and begins the next |
//! | `damage` | the end of the chain as this process wrote it, and what happened to its file |
//! | `log`, `queue` | the handle that calls hold, and the records that wait to be written |
//! | `batch_writer`, `disk_latency` | where records are written: on a call's task, or on the thread while the disk is slow |
//! | `line_reader`, `verify` | reads any file line by line, and verifies the chain |

mod batch_writer;
mod clock;
mod damage;
mod directory;
mod disk_latency;
mod hex_digest;
mod line;
mod line_reader;
mod log;
mod log_event;
mod queue;
pub mod record;
mod settings;
mod tail;
mod verify;
mod writer;

pub use directory::{files_of, is_file_name};
pub use line::{Hash, MAX_LINE_BYTES, ParseHashError};
pub use line_reader::{Line, LineReader};
pub use log::{AuditLog, CLOSE_TIMEOUT, Concurrency, LogStatus};
pub use log_event::LogEvent;
pub use queue::QUEUE_RECORDS;
pub use settings::Settings;
pub use tail::{Head, HeadError, head};
pub use verify::{BrokenChain, ChainStart, Fault, VerifiedChain, VerifyError, VerifyRequest, verify};
pub use writer::open::OpenError;
