//! The connections to one process: one at first, and more under load, up to a limit.
//!
//! Each HTTP/2 stream takes a lock and a place in the queues of its connection, on both sides. Measured: 64
//! concurrent calls on four connections are answered nearly twice as fast as on one, while a plugin that is
//! called now and then gains nothing by a second. So hundreds of rarely used plugins hold one each.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::link::{FloodReport, Link, LinkError};
use crate::connect::Target;

/// Once every connection has more calls than this, another one is opened. Two connections for fewer calls
/// cost more wake-ups than they save waiting.
const CALLS_FOR_ANOTHER: usize = 8;

/// With this many concurrent calls a connection counts as busy. With fewer the machine is mostly idle.
const BUSY_CALLS: usize = 4;
/// With this many left it no longer does. Lower than [`BUSY_CALLS`], so that the flag does not flap.
const CALM_CALLS: usize = 1;

/// The connections for the calls of one process.
#[derive(Debug)]
pub(super) struct ConnectionPool {
    target: Target,
    pub(super) flooded: FloodReport,
    /// Opened from the front; the rest is empty.
    slots: Box<[ConnectionSlot]>,
    open: AtomicUsize,
    /// A connection is being opened, or could not be: then no further attempt is made, because the plugin may
    /// have a limit.
    opening: AtomicBool,
}

/// One connection, or an empty slot for one.
#[derive(Debug, Default)]
pub(super) struct ConnectionSlot {
    link: OnceLock<Arc<Link>>,
    pub(super) in_flight: AtomicUsize,
}

/// Counts one call on a connection until it is dropped.
pub(super) struct ConnectionLease<'p> {
    slot: &'p ConnectionSlot,
    pub(super) link: &'p Arc<Link>,
}

impl Drop for ConnectionLease<'_> {
    fn drop(&mut self) {
        if self.slot.in_flight.fetch_sub(1, Ordering::Relaxed) == CALM_CALLS + 1 {
            self.link.busy().set(false);
        }
    }
}

impl ConnectionPool {
    /// Opens the first connection. There will be at most `most` connections, at least one.
    pub(super) async fn open(target: Target, most: u32) -> Result<Self, LinkError> {
        let flooded = FloodReport::default();
        let link = Arc::new(Link::open(target.clone(), flooded.clone()).await?);
        let most = usize::try_from(most).unwrap_or(1).max(1);
        let places: Box<[ConnectionSlot]> = (0..most).map(|_| ConnectionSlot::default()).collect();
        // Cannot fail: the slot is new.
        let _ = places[0].link.set(link);
        Ok(Self {
            target,
            flooded,
            slots: places,
            open: AtomicUsize::new(1),
            opening: AtomicBool::new(false),
        })
    }

    /// The connection for everything except calls.
    pub(super) fn first(&self) -> &Arc<Link> {
        self.slots[0].link.get().expect("it was opened before there was a pool")
    }

    /// The connection with the fewest calls; counts one more.
    pub(super) fn least_used(&self) -> ConnectionLease<'_> {
        let open = self.open.load(Ordering::Acquire);
        let used = |place: &&ConnectionSlot| place.in_flight.load(Ordering::Relaxed);
        let place = self.slots[..open].iter().min_by_key(used).unwrap_or(&self.slots[0]);
        let link = place.link.get().unwrap_or_else(|| self.first());
        if place.in_flight.fetch_add(1, Ordering::Relaxed) + 1 >= BUSY_CALLS {
            link.busy().set(true);
        }
        ConnectionLease { slot: place, link }
    }

    /// Whether every connection has many calls and there is room for another. If so, the caller has to open
    /// it.
    pub(super) fn claim_opening(&self, used: &ConnectionLease<'_>) -> bool {
        used.slot.in_flight.load(Ordering::Relaxed) > CALLS_FOR_ANOTHER
            && self.open.load(Ordering::Relaxed) < self.slots.len()
            && !self.opening.swap(true, Ordering::AcqRel)
    }

    /// Opens one more connection. Meanwhile calls use the existing ones.
    pub(super) async fn open_another(&self) {
        let open = self.open.load(Ordering::Acquire);
        let Some(place) = self.slots.get(open) else { return };
        // The error is not needed: the existing connections still serve, and report when they break.
        let Ok(link) = Link::open(self.target.clone(), self.flooded.clone()).await else { return };
        if place.link.set(Arc::new(link)).is_ok() {
            self.open.store(open + 1, Ordering::Release);
            self.opening.store(false, Ordering::Release);
        }
    }

    #[cfg(test)]
    pub(super) fn slots(&self) -> &[ConnectionSlot] {
        &self.slots
    }

    #[cfg(test)]
    pub(super) fn opened(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }
}
