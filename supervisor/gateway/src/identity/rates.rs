//! How many requests a client may send: a bucket for each key, which fills as time passes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::address::ClientAddress;

/// The time in which a rate is counted: a client that was silent for it may send as many requests at once.
const WINDOW: Duration = Duration::from_secs(60);
/// How many clients are remembered. Beyond that those are forgotten first whose bucket is full again; if that frees none, all are:
/// whoever can send from so many addresses gets a fresh bucket with each anyway.
const MAX_KEYS: usize = 16_384;

/// The buckets by address and by credential.
#[derive(Debug, Default)]
pub struct Rates {
    by_address: Buckets<ClientAddress>,
    by_credential: Buckets<Arc<str>>,
}

impl Rates {
    /// Takes a request of this address.
    ///
    /// # Errors
    /// How long to wait.
    pub fn take_address(&self, address: ClientAddress, per_minute: u32) -> Result<(), Duration> {
        self.by_address.take(address, per_minute, Instant::now())
    }

    /// Takes a request of this credential, or of another key that stands for one client.
    ///
    /// # Errors
    /// How long to wait.
    pub fn take_credential(&self, id: &str, per_minute: u32) -> Result<(), Duration> {
        self.by_credential.take(id.into(), per_minute, Instant::now())
    }
}

/// Buckets, as the generic cell rate algorithm has them: all that is kept of one is when it will be full again.
#[derive(Debug)]
struct Buckets<K>(Mutex<HashMap<K, Instant>>);

impl<K> Default for Buckets<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq> Buckets<K> {
    fn take(&self, key: K, per_minute: u32, now: Instant) -> Result<(), Duration> {
        let one = WINDOW / per_minute.max(1);
        let mut full_at = self.0.lock();
        if full_at.len() >= MAX_KEYS && !full_at.contains_key(&key) {
            full_at.retain(|_, full| *full > now);
            if full_at.len() >= MAX_KEYS {
                full_at.clear();
            }
        }
        let full = full_at.entry(key).or_insert(now);
        let after = (*full).max(now) + one;
        match after.checked_duration_since(now + WINDOW) {
            Some(wait) if wait > Duration::ZERO => Err(wait),
            _ => {
                *full = after;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_send_a_minutes_worth_at_once_and_then_at_its_rate() {
        let (buckets, start) = (Buckets::default(), Instant::now());
        let taken = (0..100).filter(|_| buckets.take("a", 60, start).is_ok()).count();
        assert_eq!(taken, 60);
        let wait = buckets.take("a", 60, start).unwrap_err();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(buckets.take("a", 60, start + wait), Ok(()));
        assert_eq!(buckets.take("b", 60, start), Ok(()), "others are unharmed");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (buckets, start) = (Buckets::default(), Instant::now());
        for key in 0..MAX_KEYS + 10 {
            assert_eq!(buckets.take(key, 60, start), Ok(()));
        }
        assert!(buckets.0.lock().len() <= MAX_KEYS);
    }
}
