//! Places of turns that nobody waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The places: each is a turn that holds a stream to the agent. How many of one sender there may be is the agent's limit
/// (`agent.limits.turns_per_sender`). Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct BackgroundTurns(Arc<AtomicUsize>);

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundPlace(Arc<AtomicUsize>);

impl BackgroundTurns {
    /// A place; `None` if so many are taken.
    pub(crate) fn place(&self, most: usize) -> Option<BackgroundPlace> {
        let more = |taken: usize| (taken < most).then_some(taken + 1);
        self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(BackgroundPlace(Arc::clone(&self.0)))
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for BackgroundPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-139
    #[test]
    fn places_come_back() {
        let turns = BackgroundTurns::default();
        let held: Vec<_> = std::iter::from_fn(|| turns.place(2)).collect();
        assert_eq!((held.len(), turns.taken()), (2, 2));
        assert!(turns.place(3).is_some(), "the limit is that of the moment");
        drop(held);
        assert_eq!(turns.taken(), 0);
    }
}
