//! The receiver of a turn's chunks.

use talon_proto::agent::chunk::Kind;

/// Receives a turn's chunks while it runs. Must not block: a slow listener loses pieces.
pub trait Listener: Send + Sync {
    /// Receives a chunk.
    fn on_chunk(&self, chunk: Kind);
}

/// Discards all chunks.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoListener;

impl Listener for NoListener {
    fn on_chunk(&self, _: Kind) {}
}
