//! An append-only, hash-chained, rotated log of calls and operations, and its verification.
//!
//! ```text
//! calls ──record()──► queue (bounded, counted) ──► one of the calls, ──► audit-000000000007.jsonl
//!                       │                          or the thread           each line: …,"prev":<hash before>,"hash":<own>}
//!                       │ full for too long
//!                       └─► lost: counted, and a record says how many at the place where they would stand
//! ```
//!
//! One JSON object a line. A line's own hash is over its bytes up to there, and `prev` is the hash of the line before, so
//! each hash stands for everything before it. Whoever can write the files can also write all of them anew: what shows that
//! is a hash that was noted elsewhere, see [`head`] and [`Request::anchor`].
//!
//! | file | what |
//! |---|---|
//! | [`record`] | what is recorded, and its bounds |
//! | `line` | a record as a line, and back |
//! | `directory`, `tail` | the files; where an earlier process ended |
//! | `writer` | appends, closes one file and begins the next |
//! | `log`, `queue` | the handle that calls hold, and what waits to be written |
//! | `desk`, `pace` | who writes it: a call by itself, or the thread where that would take long |
//! | `lines`, `verify` | reading, line by line, whatever is in there |

mod desk;
mod digits;
mod directory;
mod line;
mod lines;
mod log;
mod pace;
mod queue;
pub mod record;
mod tail;
mod verify;
mod writer;

pub use directory::{files_of, is_file_name};
pub use line::{Hash, MAX_LINE_BYTES, NotAHash};
pub use lines::{Line, Lines};
pub use log::{AuditLog, CLOSE_PATIENCE, Company, Status, Told};
pub use queue::QUEUE_RECORDS;
pub use tail::{Head, HeadError, head};
pub use verify::{Begins, Broken, Fault, Request, Verified, VerifyError, verify};
pub use writer::{OpenError, Settings};
