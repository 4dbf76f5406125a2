//! The plugin's key-value state, stored by the host: `talon.state.v1` on a socket that belongs to this plugin
//! alone.

mod client;
mod error;
pub(crate) mod memory;

pub use client::State;
pub(crate) use client::StateSource;
pub use error::{StateError, StateResource};

/// Where the host puts the socket's path.
pub(crate) const SOCKET_ENV: &str = "TALON_STATE_SOCKET";
/// How many keys [`State::keys`] collects before it fails, so that a listing cannot exhaust the memory.
const MAX_KEYS: usize = 100_000;
/// How often [`State::update_json`] tries. Each failed attempt means that another writer succeeded, so this
/// limit only matters when many writers change one key without a pause; they should have one key each.
const MAX_UPDATES: usize = 64;

/// The result of [`State::compare_and_set`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swap {
    /// The value was as expected and has been replaced.
    Done,
    /// Another writer was faster: this is the current value, `None` if there is none.
    Lost(Option<Vec<u8>>),
}

#[cfg(test)]
mod tests;
