//! The connections to one process. There is one until calls pile up on it; then there are more, up to a bound.
//!
//! A stream of HTTP/2 costs its connection a lock and a place in its queues, on both sides. Measured, 64 calls at once on four
//! connections are answered nearly twice as fast as on one, and a plugin that is called now and then gains nothing by a second:
//! so that hundreds of plugins that do little hold one each.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::link::{Link, LinkError};
use crate::connect::Target;

/// So many calls at once on each connection there is, and a further one is opened. Two connections for fewer calls cost more
/// wake-ups than they save waiting.
const CALLS_FOR_ANOTHER: usize = 8;

/// With so many calls at once a connection has much to do. With fewer the machine has mostly nothing else to do.
const BUSY_CALLS: usize = 4;
/// With so many left it no longer has. Lower, so that it does not go to and fro.
const CALM_CALLS: usize = 1;

/// What calls of one process go over.
#[derive(Debug)]
pub(super) struct Pool {
    target: Target,
    /// From the front; the rest has not been opened.
    places: Box<[Place]>,
    open: AtomicUsize,
    /// One is being opened, or could not be: a plugin that takes so many and no more is left alone.
    opening: AtomicBool,
}

/// One connection, or the room for one.
#[derive(Debug, Default)]
pub(super) struct Place {
    link: OnceLock<Arc<Link>>,
    pub(super) in_flight: AtomicUsize,
}

/// Counts one call on a connection for as long as it takes, also when it is dropped.
pub(super) struct Use<'p> {
    place: &'p Place,
    pub(super) link: &'p Arc<Link>,
}

impl Drop for Use<'_> {
    fn drop(&mut self) {
        if self.place.in_flight.fetch_sub(1, Ordering::Relaxed) == CALM_CALLS + 1 {
            self.link.busy().set(false);
        }
    }
}

impl Pool {
    /// Connects once. There will be at most `most` connections, at least one.
    pub(super) async fn open(target: Target, most: u32) -> Result<Self, LinkError> {
        let link = Arc::new(Link::open(target.clone()).await?);
        let most = usize::try_from(most).unwrap_or(1).max(1);
        let places: Box<[Place]> = (0..most).map(|_| Place::default()).collect();
        // It was empty a moment ago.
        let _ = places[0].link.set(link);
        Ok(Self { target, places, open: AtomicUsize::new(1), opening: AtomicBool::new(false) })
    }

    /// The connection that everything goes over that is no call.
    pub(super) fn first(&self) -> &Arc<Link> {
        self.places[0].link.get().expect("it was opened before there was a pool")
    }

    /// The connection with the fewest calls, with one more counted.
    pub(super) fn least_used(&self) -> Use<'_> {
        let open = self.open.load(Ordering::Acquire);
        let used = |place: &&Place| place.in_flight.load(Ordering::Relaxed);
        let place = self.places[..open].iter().min_by_key(used).unwrap_or(&self.places[0]);
        let link = place.link.get().unwrap_or_else(|| self.first());
        if place.in_flight.fetch_add(1, Ordering::Relaxed) + 1 >= BUSY_CALLS {
            link.busy().set(true);
        }
        Use { place, link }
    }

    /// Whether calls pile up on all there are, and there may be one more. Whoever is told so opens it.
    pub(super) fn wants_another(&self, used: &Use<'_>) -> bool {
        used.place.in_flight.load(Ordering::Relaxed) > CALLS_FOR_ANOTHER
            && self.open.load(Ordering::Relaxed) < self.places.len()
            && !self.opening.swap(true, Ordering::AcqRel)
    }

    /// Opens one more. Calls go over those there are meanwhile.
    pub(super) async fn open_another(&self) {
        let open = self.open.load(Ordering::Acquire);
        let Some(place) = self.places.get(open) else { return };
        // Why it cannot be had is of no use to anybody: the ones before serve on, and tell when they break.
        let Ok(link) = Link::open(self.target.clone()).await else { return };
        if place.link.set(Arc::new(link)).is_ok() {
            self.open.store(open + 1, Ordering::Release);
            self.opening.store(false, Ordering::Release);
        }
    }

    #[cfg(test)]
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    #[cfg(test)]
    pub(super) fn opened(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }
}
