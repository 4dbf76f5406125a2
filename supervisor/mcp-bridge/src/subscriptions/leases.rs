//! Who follows which resources, and until when. Pure.

use std::collections::{BTreeSet, HashMap};

use tokio::time::Instant;

/// The most resources of a server that are followed at once, by all subscribers together: each is a subscription at the server.
/// Further ones are refused.
pub(crate) const MAX_RESOURCES: usize = 256;
/// The most subscribers at once. Each is a program that runs `talon mcp`, or one like it; a further one is refused.
pub(crate) const MAX_SUBSCRIBERS: usize = 64;

/// Why a resource is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LeaseError {
    #[error("{MAX_RESOURCES} resources of this server are followed already: have others given up first")]
    Resources,
    #[error("{MAX_SUBSCRIBERS} programs follow resources of this server already: end one of them first")]
    Subscribers,
}

#[derive(Debug)]
struct Lease {
    uris: BTreeSet<String>,
    until: Instant,
}

/// The leases of all subscribers, by their names.
#[derive(Debug, Default)]
pub(crate) struct Leases(HashMap<String, Lease>);

impl Leases {
    /// From now on `subscriber` follows exactly these, until then. Returns those that are too many. What it followed before is
    /// taken first, so that a renewal loses nothing.
    pub(crate) fn set(
        &mut self,
        subscriber: &str,
        uris: &[String],
        until: Instant,
    ) -> HashMap<String, LeaseError> {
        let before = self.0.remove(subscriber).map(|lease| lease.uris).unwrap_or_default();
        if uris.is_empty() {
            return HashMap::new();
        }
        if self.0.len() >= MAX_SUBSCRIBERS {
            return uris.iter().map(|uri| (uri.clone(), LeaseError::Subscribers)).collect();
        }
        let mut all = self.wanted();
        let mut lease = Lease { uris: BTreeSet::new(), until };
        let mut refused = HashMap::new();
        let (known, new): (Vec<_>, Vec<_>) = uris.iter().partition(|uri| before.contains(*uri));
        for uri in known.into_iter().chain(new) {
            if all.len() >= MAX_RESOURCES && !all.contains(uri) {
                refused.insert(uri.clone(), LeaseError::Resources);
                continue;
            }
            all.insert(uri.clone());
            lease.uris.insert(uri.clone());
        }
        self.keep(subscriber, lease);
        refused
    }

    /// `subscriber` does not follow these any more.
    pub(crate) fn drop_resources<'u>(
        &mut self,
        subscriber: &str,
        uris: impl IntoIterator<Item = &'u String>,
    ) {
        let Some(mut lease) = self.0.remove(subscriber) else { return };
        for uri in uris {
            lease.uris.remove(uri);
        }
        self.keep(subscriber, lease);
    }

    /// A lease on nothing is none.
    fn keep(&mut self, subscriber: &str, lease: Lease) {
        if !lease.uris.is_empty() {
            self.0.insert(subscriber.to_owned(), lease);
        }
    }

    /// Ends what was not renewed.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.0.retain(|_, lease| lease.until > now);
    }

    /// When the next lease ends, unless it is renewed.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.0.values().map(|lease| lease.until).min()
    }

    /// What anybody follows.
    pub(crate) fn wanted(&self) -> BTreeSet<String> {
        self.0.values().flat_map(|lease| &lease.uris).cloned().collect()
    }
}

#[cfg(test)]
#[path = "leases_tests.rs"]
mod tests;
