//! What a lane is told from outside.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The most notifications that a person may wish to be attempted before others; more are attempted in their turn.
const MAX_WISHED: usize = 64;

/// Has a lane look.
#[derive(Debug, Default)]
pub(super) struct LaneSignal {
    changed: Notify,
    /// Whether the lane looks even if its sink failed a moment ago.
    at_once: AtomicBool,
    wished: Mutex<Vec<String>>,
}

impl LaneSignal {
    /// There is something new.
    pub(super) fn changed(&self) {
        self.changed.notify_one();
    }

    /// A person wishes that it looks at once.
    pub(super) fn look_at_once(&self) {
        self.at_once.store(true, Ordering::Release);
        self.changed();
    }

    /// A person wishes that it attempts this notification first.
    pub(super) fn wish(&self, id: &str) {
        let mut wished = self.wished.lock();
        if wished.len() < MAX_WISHED {
            wished.push(id.to_owned());
        }
        drop(wished);
        self.look_at_once();
    }

    /// Resolves when there is something to look at.
    pub(super) async fn wait(&self) {
        self.changed.notified().await;
    }

    /// Whether it is to look at once, and what a person wishes first. Then it is not wished any more.
    pub(super) fn take(&self) -> (bool, Vec<String>) {
        (self.at_once.swap(false, Ordering::AcqRel), std::mem::take(&mut self.wished.lock()))
    }
}
