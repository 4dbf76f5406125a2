//! Limits the number of concurrent connections or requests, in total and per user.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::place_limiter::{PlaceLimitError, PlaceLimiter, PlaceLimits, PlacePermit};

/// Counts connections, or requests, in total and per uid, or per another key that stands for one user.
#[derive(Debug)]
pub struct ConnectionLimiter<K: Hash + Eq + Clone = u32> {
    limits: PlaceLimits,
    places: Arc<PlaceLimiter<K>>,
    acquired: AtomicU64,
}

/// A permit, released on drop.
pub type ConnectionPermit<K = u32> = PlacePermit<K>;

impl<K: Hash + Eq + Clone> ConnectionLimiter<K> {
    /// A limiter with a total limit and a limit per uid.
    #[must_use]
    pub fn new(most: usize, most_per_uid: usize) -> Arc<Self> {
        Arc::new(Self {
            limits: PlaceLimits { all: most, of_one: most_per_uid },
            places: Arc::default(),
            acquired: AtomicU64::new(0),
        })
    }

    /// The total limit, and the limit per uid.
    #[must_use]
    pub fn limits(&self) -> (usize, usize) {
        (self.limits.all, self.limits.of_one)
    }

    /// How many permits are held, and how many were ever acquired.
    #[must_use]
    pub fn usage(&self) -> (usize, u64) {
        (self.places.taken(), self.acquired.load(Ordering::Relaxed))
    }

    /// Acquires a permit.
    ///
    /// # Errors
    /// [`PlaceLimitError`]
    pub fn acquire(&self, uid: K) -> Result<ConnectionPermit<K>, PlaceLimitError> {
        self.acquire_beside(uid, 0)
    }

    /// The same for a user who must leave this many of all permits to others.
    ///
    /// # Errors
    /// [`PlaceLimitError`]
    pub fn acquire_beside(&self, uid: K, reserved: usize) -> Result<ConnectionPermit<K>, PlaceLimitError> {
        let all = self.limits.all.saturating_sub(reserved);
        let permit = self.places.take(uid, PlaceLimits { all, ..self.limits })?;
        self.acquired.fetch_add(1, Ordering::Relaxed);
        Ok(permit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: HOST-7, HOST-18
    #[test]
    fn one_uid_cannot_take_all_places() {
        let places = ConnectionLimiter::new(5, 3);
        let held: Vec<ConnectionPermit> = std::iter::from_fn(|| places.acquire(1000).ok()).collect();
        assert_eq!((held.len(), places.acquire(1000).unwrap_err()), (3, PlaceLimitError::OfOne(3)));
        let others: Vec<ConnectionPermit> = std::iter::from_fn(|| places.acquire(0).ok()).collect();
        assert_eq!((others.len(), places.acquire(7).unwrap_err()), (2, PlaceLimitError::All(5)));
        drop(others);
        assert!(places.acquire_beside(0, 2).is_err() && places.acquire_beside(0, 1).is_ok());
        drop(held);
        assert!(places.acquire(1000).is_ok());
        assert_eq!(places.usage(), (0, 7));
    }
}
