//! The journal of a session, in the store.
//!
//! Each [`JournalEntry`] of a turn is written before it takes effect, so that after a crash at any moment the
//! journal says how far the turn was. `record` encodes entries as messages of the store, [`Transcript`] is
//! what a model sees of them, and [`UnfinishedTurn`] is a turn without an end, which a driver can resume
//! ([`crate::driver::TurnSpec::resumes`]).
//!
//! One turn writes to a session at a time; the caller that runs turns ensures that.

mod client_view;
mod entry;
mod events;
mod fact;
mod find_turn;
mod log;
mod record;
mod recorded_end;
mod shown_count;
mod store_journal;
mod transcript;
mod undo;
mod unfinished;

pub use client_view::client_messages;
pub use entry::{Journal, JournalEntry, JournalError, TurnOptions, TurnOutcome, TurnTotals};
pub use events::{EVENTS_PER_MESSAGE, EventTranslator};
pub use fact::SessionFact;
pub use find_turn::{FoundTurn, find_turn};
pub use recorded_end::{find_request, recorded_end};
pub use shown_count::ShownCount;
pub use store_journal::StoreJournal;
pub use transcript::{Transcript, UNKNOWN};
pub use undo::{UndoneTurns, undo};
pub use unfinished::{SessionPosition, UnfinishedTurn, close, session_position, turn_entries, unfinished};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
