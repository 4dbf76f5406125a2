//! Gates that hold answers back until a test opens them.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::watch;

/// Gates by name. A gate is closed until it is opened, and then stays open.
#[derive(Debug, Default)]
pub(super) struct Gates(Mutex<BTreeMap<String, watch::Sender<bool>>>);

impl Gates {
    /// Releases every answer that waits for `name`, now and later.
    pub(super) fn open(&self, name: &str) {
        self.gate(name).send_replace(true);
    }

    /// Returns when the gate `name` is open.
    pub(super) async fn wait(&self, name: &str) {
        let mut is_open = self.gate(name).subscribe();
        // It cannot close: the gates own the sender.
        drop(is_open.wait_for(|is_open| *is_open).await);
    }

    fn gate(&self, name: &str) -> watch::Sender<bool> {
        let mut gates = self.0.lock();
        gates.entry(name.to_owned()).or_insert_with(|| watch::channel(false).0).clone()
    }
}
