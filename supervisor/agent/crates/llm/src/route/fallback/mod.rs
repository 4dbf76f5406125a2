//! Asks one model after the other until one answers.
//!
//! # What a listener hears of an attempt that fails
//!
//! Pieces are passed on as they come, and taken back by [`Heard::Withdrawn`] when the attempt that said them fails: the next
//! attempt starts an answer of its own. The other ways would be to hold an answer back until it is whole, which is no streaming
//! at all, or never to try again once something was said, which loses a turn to each connection that breaks. A listener that
//! cannot take anything back says so ([`Listen::can_withdraw`]), and the chain then ends with the error of an attempt that had
//! begun to speak.
//!
//! # What bounds it
//!
//! [`ChainSettings::patience`] bounds everything together, [`ChainSettings::silence`] the time without a piece,
//! [`MAX_ATTEMPTS`] the attempts. Dropping the future drops the attempt under way, and its connection.

mod attempt;
mod chain;
mod event;
mod gave_up;
mod health;
mod hearing;
mod listen;
mod log;
mod run;
mod under_way;

pub use self::attempt::{Answered, Attempt, AttemptError};
pub use self::chain::{Ask, Chain, ChainSettings, DEFAULT_PATIENCE, DEFAULT_PROBE_TIMEOUT, DEFAULT_SILENCE};
pub use self::event::{Event, Watch};
pub use self::gave_up::{Exhausted, GaveUp};
pub use self::health::{Probe, ProviderState};
pub use self::listen::{Heard, Listen};
pub use self::log::Log;
pub use self::run::MAX_ATTEMPTS;

#[cfg(test)]
mod tests;
