//! A listener between calls and clients that adds up costs.

use std::sync::Arc;

use parking_lot::Mutex;
use talon_proto::agent::chunk::Kind;

use super::Listener;

/// Forwards the chunks of calls, and adds up the costs of sub-agents among them, which count for the turn.
pub(super) struct CostTrackingListener {
    inner: Arc<dyn Listener>,
    pico_usd: Mutex<u128>,
}

impl CostTrackingListener {
    pub(super) fn new(inner: Arc<dyn Listener>) -> Self {
        Self { inner, pico_usd: Mutex::new(0) }
    }

    pub(super) fn pico_usd(&self) -> u128 {
        *self.pico_usd.lock()
    }
}

impl Listener for CostTrackingListener {
    fn on_chunk(&self, chunk: Kind) {
        if let Kind::SubagentResult(result) = &chunk {
            let mut sum = self.pico_usd.lock();
            *sum = sum.saturating_add(result.cost_pico_usd.into());
        }
        self.inner.on_chunk(chunk);
    }
}
