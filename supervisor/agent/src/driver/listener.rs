//! Who follows a turn.

use talon_proto::agent::chunk::Kind;

/// Hears of a turn as it goes on. Must not block: a listener that is too slow is one that loses pieces.
pub trait Listener: Send + Sync {
    /// One more chunk.
    fn hear(&self, chunk: Kind);
}

/// Nobody does.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Listener for Nobody {
    fn hear(&self, _: Kind) {}
}
