//! What clients change, and the agent by itself, for the supervisor's audit log.
//!
//! ```text
//! a request that changes something ─ OperationRecording ─► OperationLog ─► run: RateLimit ─ control socket ─► the supervisor's log
//! ```
//!
//! A client is answered once the packet with its operation was written to the control socket: what was told as done is recorded,
//! though the agent is killed right after. A place for the record is there before the operation begins.

mod log;
mod outcome;
mod rate_limit;
mod recording;
mod subject;
#[cfg(test)]
mod tests;

pub(crate) use log::OperationLog;
pub(crate) use outcome::OperationOutcome;
pub(crate) use rate_limit::RateLimit;
pub(crate) use recording::OperationRecording;
pub(crate) use subject::{NO_ID, decided_subject, digest, id};
