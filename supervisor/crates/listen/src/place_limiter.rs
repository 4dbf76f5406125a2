//! Limits how many places are taken at once, in total and per user. Each request for a place brings its limits, since a configuration may
//! change them; lower ones take no place away.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use tonic::Status;

/// Counts places that are taken, in total and per key, which stands for one user.
#[derive(Debug)]
pub struct PlaceLimiter<K: Hash + Eq>(Mutex<TakenPlaces<K>>);

#[derive(Debug)]
struct TakenPlaces<K> {
    all: usize,
    by_key: HashMap<K, usize>,
}

/// The most places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceLimits {
    /// In total.
    pub all: usize,
    /// Of one user.
    pub of_one: usize,
}

/// A limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlaceLimitError {
    /// That of all users.
    #[error("{0} places of all users are taken")]
    All(usize),
    /// That of this user.
    #[error("{0} places of one user are taken")]
    OfOne(usize),
}

impl PlaceLimitError {
    /// The error of a request that gets no place: `places` are of this kind, `remedy` gives one back, and the keys of the configuration set
    /// the limits of all users and of one.
    #[must_use]
    pub fn status(self, places: &str, remedy: &str, [all_key, of_one_key]: [&str; 2]) -> Status {
        let (most, whose, key) = match self {
            Self::All(most) => (most, "all users", all_key),
            Self::OfOne(most) => (most, "one user", of_one_key),
        };
        Status::resource_exhausted(format!(
            "{most} {places} of {whose} are the most at once: {remedy}, or raise {key}"
        ))
    }
}

/// A place, given back on drop.
#[derive(Debug)]
pub struct PlacePermit<K: Hash + Eq> {
    limiter: Arc<PlaceLimiter<K>>,
    key: Option<K>,
}

impl<K: Hash + Eq> Default for PlaceLimiter<K> {
    fn default() -> Self {
        Self(Mutex::new(TakenPlaces { all: 0, by_key: HashMap::new() }))
    }
}

impl<K: Hash + Eq> PlaceLimiter<K> {
    /// How many are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.0.lock().all
    }
}

impl<K: Hash + Eq + Clone> PlaceLimiter<K> {
    /// Takes a place for a user; without a key it counts in the total alone.
    ///
    /// # Errors
    /// [`PlaceLimitError`]: the total limit, if both are reached.
    pub fn take(
        self: &Arc<Self>,
        key: impl Into<Option<K>>,
        limits: PlaceLimits,
    ) -> Result<PlacePermit<K>, PlaceLimitError> {
        let key = key.into();
        let mut taken = self.0.lock();
        if taken.all >= limits.all {
            return Err(PlaceLimitError::All(limits.all));
        }
        if let Some(key) = &key {
            let own = taken.by_key.get(key).copied().unwrap_or(0);
            if own >= limits.of_one {
                return Err(PlaceLimitError::OfOne(limits.of_one));
            }
            taken.by_key.insert(key.clone(), own + 1);
        }
        taken.all += 1;
        Ok(PlacePermit { limiter: Arc::clone(self), key })
    }
}

impl<K: Hash + Eq> Drop for PlacePermit<K> {
    fn drop(&mut self) {
        let mut taken = self.limiter.0.lock();
        taken.all -= 1;
        if let Some(key) = &self.key
            && let Some(own) = taken.by_key.get_mut(key)
        {
            *own -= 1;
            if *own == 0 {
                taken.by_key.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Take { key: Option<u8>, limits: PlaceLimits },
        GiveBack(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        let limits = (0..8_usize, 0..5_usize).prop_map(|(all, of_one)| PlaceLimits { all, of_one });
        let take = (prop::option::of(0..3_u8), limits).prop_map(|(key, limits)| Step::Take { key, limits });
        prop_oneof![2 => take, 1 => any::<prop::sample::Index>().prop_map(Step::GiveBack)]
    }

    #[test]
    fn an_error_says_which_limit_is_reached_and_where_it_is_set() {
        let keys = ["host.limits.requests", "host.limits.requests_per_user"];
        let said = |error: PlaceLimitError| error.status("requests", "wait", keys).message().to_owned();
        assert_eq!(
            said(PlaceLimitError::All(9)),
            "9 requests of all users are the most at once: wait, or raise host.limits.requests"
        );
        assert_eq!(
            said(PlaceLimitError::OfOne(3)),
            "3 requests of one user are the most at once: wait, or raise host.limits.requests_per_user"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        /// A place is refused when, and only when, its limits are reached; what is given back is free again, and nothing is kept of it.
        // Promises: GW-293
        #[test]
        fn so_many_places_are_taken_as_their_limits_say(steps in prop::collection::vec(step(), 0..60)) {
            let limiter = Arc::new(PlaceLimiter::<u8>::default());
            let mut held: Vec<PlacePermit<u8>> = Vec::new();
            for step in steps {
                match step {
                    Step::Take { key, limits } => {
                        let own = held.iter().filter(|place| key.is_some() && place.key == key).count();
                        let expected = if held.len() >= limits.all {
                            Some(PlaceLimitError::All(limits.all))
                        } else {
                            (key.is_some() && own >= limits.of_one).then_some(PlaceLimitError::OfOne(limits.of_one))
                        };
                        let taken = limiter.take(key, limits);
                        prop_assert_eq!(taken.as_ref().err(), expected.as_ref());
                        held.extend(taken.ok());
                    }
                    Step::GiveBack(place) if !held.is_empty() => {
                        let place = place.index(held.len());
                        drop(held.swap_remove(place));
                    }
                    Step::GiveBack(_) => {}
                }
                prop_assert_eq!(limiter.taken(), held.len());
            }
            drop(held);
            prop_assert_eq!(limiter.taken(), 0);
            prop_assert!(limiter.0.lock().by_key.is_empty());
        }
    }
}
