//! Limits the number of concurrent connections or requests, in total and per user.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Counts connections, or requests, in total and per uid, or per another key that stands for one user.
#[derive(Debug)]
pub struct ConnectionLimiter<K: Hash + Eq + Clone = u32> {
    max: usize,
    max_per_uid: usize,
    by_uid: Mutex<HashMap<K, usize>>,
    acquired: AtomicU64,
}

/// A permit, released on drop.
#[derive(Debug)]
pub struct ConnectionPermit<K: Hash + Eq + Clone = u32> {
    limiter: Arc<ConnectionLimiter<K>>,
    uid: K,
}

impl<K: Hash + Eq + Clone> ConnectionLimiter<K> {
    /// A limiter with a total limit and a limit per uid.
    #[must_use]
    pub fn new(most: usize, most_per_uid: usize) -> Arc<Self> {
        Arc::new(Self {
            max: most,
            max_per_uid: most_per_uid,
            by_uid: Mutex::default(),
            acquired: AtomicU64::new(0),
        })
    }

    /// The total limit, and the limit per uid.
    #[must_use]
    pub fn limits(&self) -> (usize, usize) {
        (self.max, self.max_per_uid)
    }

    /// How many permits are held, and how many were ever acquired.
    #[must_use]
    pub fn usage(&self) -> (usize, u64) {
        let held = self.by_uid.lock().values().sum();
        (held, self.acquired.load(Ordering::Relaxed))
    }

    /// Acquires a permit; `None` if a limit is reached.
    pub fn acquire(self: &Arc<Self>, uid: K) -> Option<ConnectionPermit<K>> {
        self.acquire_beside(uid, 0)
    }

    /// The same for a user who must leave this many of all permits to others.
    pub fn acquire_beside(self: &Arc<Self>, uid: K, reserved: usize) -> Option<ConnectionPermit<K>> {
        let mut by_uid = self.by_uid.lock();
        let all: usize = by_uid.values().sum();
        let own = by_uid.get(&uid).copied().unwrap_or(0);
        if all.saturating_add(reserved) >= self.max || own >= self.max_per_uid {
            return None;
        }
        by_uid.insert(uid.clone(), own + 1);
        self.acquired.fetch_add(1, Ordering::Relaxed);
        Some(ConnectionPermit { limiter: Arc::clone(self), uid })
    }
}

impl<K: Hash + Eq + Clone> Drop for ConnectionPermit<K> {
    fn drop(&mut self) {
        let mut by_uid = self.limiter.by_uid.lock();
        if let Some(own) = by_uid.get_mut(&self.uid) {
            *own -= 1;
            if *own == 0 {
                by_uid.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: HOST-7, HOST-18
    #[test]
    fn one_uid_cannot_take_all_places() {
        let places = ConnectionLimiter::new(5, 3);
        let held: Vec<ConnectionPermit> = std::iter::from_fn(|| places.acquire(1000)).collect();
        assert_eq!(held.len(), 3);
        let others: Vec<ConnectionPermit> = std::iter::from_fn(|| places.acquire(0)).collect();
        assert_eq!(others.len(), 2);
        drop(others);
        assert!(places.acquire_beside(0, 2).is_none() && places.acquire_beside(0, 1).is_some());
        drop(held);
        assert!(places.acquire(1000).is_some());
        assert_eq!(places.usage(), (0, 7));
        assert_eq!(places.by_uid.lock().get(&1000), None, "a free place is forgotten");
    }
}
