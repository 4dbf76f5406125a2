//! How many connections there are, in all and of one address: a client cannot lock out the others.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::traffic::Traffic;
use crate::identity::ClientAddress;

/// Counts connections.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    counts: Mutex<Counts>,
    traffic: Arc<Traffic>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    by_address: HashMap<ClientAddress, usize>,
}

/// A place, given back on drop.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    address: Option<ClientAddress>,
}

impl ConnectionLimiter {
    pub(super) fn new(traffic: Arc<Traffic>) -> Arc<Self> {
        Arc::new(Self { counts: Mutex::default(), traffic })
    }

    /// A place for a connection of this address; `None` for the address counts in the sum alone, as of a proxy, which has the
    /// connections of many. The limits are those of the moment; fewer ones close nothing.
    pub(super) fn acquire(
        self: &Arc<Self>,
        address: Option<ClientAddress>,
        most: usize,
        most_per_address: usize,
    ) -> Option<ConnectionPermit> {
        let mut counts = self.counts.lock();
        if counts.all >= most {
            return None;
        }
        if let Some(address) = address {
            let own = counts.by_address.get(&address).copied().unwrap_or(0);
            if own >= most_per_address {
                return None;
            }
            counts.by_address.insert(address, own + 1);
        }
        counts.all += 1;
        self.traffic.opened();
        Some(ConnectionPermit { limiter: Arc::clone(self), address })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut counts = self.limiter.counts.lock();
        counts.all -= 1;
        if let Some(address) = self.address
            && let Some(own) = counts.by_address.get_mut(&address)
        {
            *own -= 1;
            if *own == 0 {
                counts.by_address.remove(&address);
            }
        }
        self.limiter.traffic.closed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_cannot_take_all_places() {
        let traffic = Arc::new(Traffic::default());
        let limiter = ConnectionLimiter::new(Arc::clone(&traffic));
        let of = |text: &str| Some(ClientAddress::of(text.parse().unwrap()));
        let acquire = |address| limiter.acquire(address, 5, 3);
        let mut held: Vec<_> = std::iter::from_fn(|| acquire(of("192.0.2.1"))).collect();
        assert_eq!(held.len(), 3);
        held.extend(std::iter::from_fn(|| acquire(of("192.0.2.2"))));
        assert_eq!((held.len(), traffic.connections()), (5, 5));
        assert!(acquire(None).is_none());
        drop(held);
        assert_eq!(traffic.connections(), 0);
        assert!(limiter.counts.lock().by_address.is_empty(), "a free place is forgotten");
        assert_eq!(std::iter::from_fn(|| acquire(None)).take(5).count(), 5);
    }
}
