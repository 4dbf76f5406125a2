//! How many calls of a client are under way, and whether its connection is busy with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use talon_wire::BusyFlag;

/// With this many calls at once the connection counts as busy. With fewer the machine is mostly idle.
const BUSY_CALLS: usize = 4;
/// With this many left it no longer does. Lower than [`BUSY_CALLS`], so that the flag does not flap.
const CALM_CALLS: usize = 1;

/// Counts the calls of a client and its clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallsInFlight {
    count: Arc<AtomicUsize>,
    pub(crate) busy: BusyFlag,
}

/// One call, until it is dropped.
#[derive(Debug)]
pub(crate) struct CallInFlight<'c>(&'c CallsInFlight);

impl CallsInFlight {
    /// Counts one more.
    pub(crate) fn begin(&self) -> CallInFlight<'_> {
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 >= BUSY_CALLS {
            self.busy.set(true);
        }
        CallInFlight(self)
    }
}

impl Drop for CallInFlight<'_> {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::Relaxed) == CALM_CALLS + 1 {
            self.0.busy.set(false);
        }
    }
}
