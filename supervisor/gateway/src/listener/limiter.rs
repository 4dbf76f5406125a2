//! How many connections there are, in all and of one address: a client cannot lock out the others.

use std::sync::Arc;

use talon_listen::{PlaceLimiter, PlaceLimits, PlacePermit};

use super::traffic::Traffic;
use crate::identity::ClientAddress;

/// Counts connections.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    places: Arc<PlaceLimiter<ClientAddress>>,
    traffic: Arc<Traffic>,
}

/// A place, given back on drop.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    traffic: Arc<Traffic>,
    _place: PlacePermit<ClientAddress>,
}

impl ConnectionLimiter {
    pub(super) fn new(traffic: Arc<Traffic>) -> Arc<Self> {
        Arc::new(Self { places: Arc::default(), traffic })
    }

    /// A place for a connection of this address; `None` for the address counts in the sum alone, as of a proxy, which has the
    /// connections of many. The limits are those of the moment; fewer ones close nothing.
    pub(super) fn acquire(
        &self,
        address: Option<ClientAddress>,
        most: usize,
        most_per_address: usize,
    ) -> Option<ConnectionPermit> {
        let limits = PlaceLimits { all: most, of_one: most_per_address };
        let place = self.places.take(address, limits).ok()?;
        self.traffic.opened();
        Some(ConnectionPermit { traffic: Arc::clone(&self.traffic), _place: place })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.traffic.closed();
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
        assert_eq!(std::iter::from_fn(|| acquire(None)).take(5).count(), 5);
    }
}
