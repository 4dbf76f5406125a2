//! Asks one model after the other until one answers.
//!
//! # Pieces of an attempt that fails
//!
//! Pieces are passed on as they arrive. [`AnswerEvent::Withdrawn`] withdraws them when their attempt fails:
//! the next attempt starts a new answer. The alternatives are to hold an answer back until it is complete,
//! which is no streaming, or not to retry after the first piece, which loses a turn to each broken
//! connection. A listener that cannot withdraw pieces says so ([`AnswerListener::can_withdraw`]); the chain
//! then ends with the error of an attempt that had sent any.
//!
//! # Limits
//!
//! [`ChainSettings::patience`] limits the whole request, [`ChainSettings::silence`] the time without a piece,
//! [`MAX_ATTEMPTS`] the attempts. Dropping the future drops the attempt in flight, and its connection.

mod ask;
mod attempt;
mod chain;
mod event;
mod exhausted;
mod health;
mod in_flight;
mod listener;
mod log;
mod run;
mod sampling;
mod timed_attempt;

pub use self::attempt::{Answered, Attempt, AttemptError};
pub use self::chain::{
    Chain, ChainRequest, ChainSettings, DEFAULT_PATIENCE, DEFAULT_PROBE_TIMEOUT, DEFAULT_SILENCE,
};
pub use self::event::{Event, EventObserver};
pub use self::exhausted::{ExhaustedError, ExhaustedReason};
pub use self::health::{Probe, ProviderState};
pub use self::listener::{AnswerEvent, AnswerListener};
pub use self::log::Log;
pub use self::run::MAX_ATTEMPTS;

#[cfg(test)]
mod tests;
