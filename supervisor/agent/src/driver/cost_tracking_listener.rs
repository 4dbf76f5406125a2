//! A listener between calls and clients that adds up costs, and collects who saw the text.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use talon_proto::agent::chunk::Kind;

use super::Listener;

/// Forwards the chunks of calls, adds up the costs of sub-agents among them, which count for the turn, and
/// collects the models that they asked.
pub(super) struct CostTrackingListener {
    inner: Arc<dyn Listener>,
    pico_usd: Mutex<u128>,
    models: Mutex<BTreeSet<String>>,
}

impl CostTrackingListener {
    pub(super) fn new(inner: Arc<dyn Listener>) -> Self {
        Self { inner, pico_usd: Mutex::new(0), models: Mutex::default() }
    }

    /// The models that sub-agents asked.
    pub(super) fn models(&self) -> BTreeSet<String> {
        self.models.lock().clone()
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
            self.models.lock().extend(result.models.iter().cloned());
        }
        self.inner.on_chunk(chunk);
    }
}
