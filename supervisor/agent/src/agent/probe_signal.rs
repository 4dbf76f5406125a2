//! Wakes the task that probes unavailable providers.

use talon_llm::route::fallback::{Event, EventObserver};
use tokio::sync::Notify;

/// Notifies the probing task that providers have to be checked again.
#[derive(Debug, Default)]
pub(crate) struct ProbeSignal(Notify);

impl ProbeSignal {
    /// Wakes the probing task.
    pub(crate) fn notify(&self) {
        self.0.notify_one();
    }

    /// Returns when the task has to look again.
    pub(crate) async fn notified(&self) {
        self.0.notified().await;
    }
}

impl EventObserver for ProbeSignal {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::Breaker { .. } = event {
            self.notify();
        }
    }
}
