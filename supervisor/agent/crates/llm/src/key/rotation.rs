//! Rotates a provider's keys.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{FoundKey, Secret};

/// How long a key rests after a rate limit, if the provider does not say: most limits are per minute.
const DEFAULT_COOLDOWN: Duration = Duration::from_secs(60);
/// The longest rest, whatever the provider says: a wrong date must not disable a key for a year.
const MAX_COOLDOWN: Duration = Duration::from_secs(60 * 60);

/// A provider's keys, used in turn so that each one's limit is used up evenly.
pub(crate) struct Keys {
    slots: Mutex<Slots>,
}

struct Slots {
    all: Vec<Slot>,
    /// The index of the next key.
    next: usize,
}

struct Slot {
    /// `None` for a provider without keys.
    key: Option<Secret>,
    place: String,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Ready,
    /// It reached a rate limit. `by_provider`: the provider named the time.
    Cooling {
        until: Instant,
        by_provider: bool,
    },
    /// It was rejected. Only a person can change that, so it is not used again until the configuration is
    /// reloaded.
    Refused,
}

/// A key that is used for one exchange.
pub(crate) struct Lease {
    index: usize,
    pub(crate) key: Option<Secret>,
    /// Where an operator finds it; empty for a provider without keys.
    pub(crate) place: String,
}

/// Why no key can be used.
#[derive(Debug, PartialEq)]
pub(crate) enum KeyUnavailableError {
    /// The remaining keys rest; the first is ready after this time.
    Cooling(Duration),
    /// All were rejected.
    Refused,
}

impl Keys {
    /// Creates the rotation. Without keys, there is one exchange without a key.
    pub(crate) fn new(found: Vec<FoundKey>) -> Self {
        let slot = |key, place| Slot { key, place, state: State::Ready };
        let mut all: Vec<_> = found.into_iter().map(|found| slot(Some(found.key), found.place)).collect();
        if all.is_empty() {
            all.push(slot(None, String::new()));
        }
        Self { slots: Mutex::new(Slots { all, next: 0 }) }
    }

    /// The next key that is not in `tried`.
    ///
    /// # Errors
    /// [`KeyUnavailableError`] if each of the others rests or was rejected.
    pub(crate) fn take(&self, tried: &[usize]) -> Result<Lease, KeyUnavailableError> {
        let now = Instant::now();
        let mut slots = self.slots.lock();
        let count = slots.all.len();
        for slot in &mut slots.all {
            if matches!(slot.state, State::Cooling { until, .. } if until <= now) {
                slot.state = State::Ready;
            }
        }
        let order = (0..count).map(|step| (slots.next + step) % count).filter(|index| !tried.contains(index));
        let state = |index: &usize| slots.all[*index].state;
        let ready = order.clone().find(|index| state(index) == State::Ready);
        // If the provider named no time, the rest is a guess: other keys are preferred, but the key can still
        // be used.
        let guessed = |index: &usize| match state(index) {
            State::Cooling { until, by_provider: false } => Some((until, *index)),
            _ => None,
        };
        let chosen =
            ready.or_else(|| order.clone().filter_map(|index| guessed(&index)).min().map(|(_, index)| index));
        let Some(index) = chosen else {
            let soonest = slots.all.iter().filter_map(|slot| match slot.state {
                State::Cooling { until, .. } => Some(until),
                State::Ready | State::Refused => None,
            });
            let soonest = soonest.min();
            return Err(soonest
                .map_or(KeyUnavailableError::Refused, |until| KeyUnavailableError::Cooling(until - now)));
        };
        slots.next = (index + 1) % count;
        let slot = &slots.all[index];
        Ok(Lease { index, key: slot.key.clone(), place: slot.place.clone() })
    }

    /// A key reached a rate limit.
    pub(crate) fn cool(&self, lease: &Lease, retry_after: Option<Duration>) {
        let rest = retry_after.unwrap_or(DEFAULT_COOLDOWN).min(MAX_COOLDOWN);
        let until = Instant::now() + rest;
        self.slots.lock().all[lease.index].state =
            State::Cooling { until, by_provider: retry_after.is_some() };
    }

    /// A key was rejected. A provider without keys is asked again all the same.
    pub(crate) fn refuse(&self, lease: &Lease) {
        let slot = &mut self.slots.lock().all[lease.index];
        if slot.key.is_some() {
            slot.state = State::Refused;
        }
    }

    /// Where the keys are found, if there are some and each was rejected.
    pub(crate) fn all_refused(&self) -> Option<Vec<String>> {
        let slots = self.slots.lock();
        let all = slots.all.iter().all(|slot| slot.state == State::Refused);
        all.then(|| slots.all.iter().map(|slot| slot.place.clone()).collect())
    }

    /// The secrets to redact.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        self.slots.lock().all.iter().filter_map(|slot| slot.key.clone()).collect()
    }
}

impl Lease {
    pub(crate) fn index(&self) -> usize {
        self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &[&str]) -> Keys {
        Keys::new(
            names
                .iter()
                .map(|name| FoundKey { key: Secret::new(*name), place: (*name).to_owned() })
                .collect(),
        )
    }

    fn taken(keys: &Keys, tried: &[usize]) -> Result<String, KeyUnavailableError> {
        keys.take(tried).map(|lease| lease.place)
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_used_in_turn() {
        let keys = keys(&["a", "b", "c"]);
        let order: Vec<_> = (0..4).map(|_| taken(&keys, &[]).expect("a key")).collect();
        assert_eq!(order, ["a", "b", "c", "a"]);
        assert_eq!(taken(&keys, &[1]).expect("a key"), "c");
    }

    #[tokio::test(start_paused = true)]
    async fn a_limited_key_rests_as_long_as_it_was_told() {
        let keys = keys(&["a", "b"]);
        let lease = keys.take(&[]).expect("a key");
        keys.cool(&lease, Some(Duration::from_secs(20)));
        assert_eq!(taken(&keys, &[]).expect("a key"), "b");
        assert_eq!(taken(&keys, &[]).expect("a key"), "b");
        assert_eq!(taken(&keys, &[1]), Err(KeyUnavailableError::Cooling(Duration::from_secs(20))));
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(taken(&keys, &[]).expect("a key"), "a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_guessed_rest_refuses_nobody() {
        let keys = keys(&["a", "b"]);
        for _ in 0..2 {
            let lease = keys.take(&[]).expect("a key");
            keys.cool(&lease, None);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(taken(&keys, &[]).expect("the one that is ready first"), "a");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wrong_date_does_not_put_a_key_away_for_ever() {
        let keys = keys(&["a"]);
        let lease = keys.take(&[]).expect("a key");
        keys.cool(&lease, Some(Duration::from_secs(u64::MAX)));
        assert_eq!(taken(&keys, &[]), Err(KeyUnavailableError::Cooling(MAX_COOLDOWN)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_key_stays_out() {
        let keys = keys(&["a"]);
        let lease = keys.take(&[]).expect("a key");
        keys.refuse(&lease);
        assert_eq!(keys.all_refused(), Some(vec!["a".to_owned()]));
        tokio::time::advance(MAX_COOLDOWN).await;
        assert_eq!(taken(&keys, &[]), Err(KeyUnavailableError::Refused));
        let none = Keys::new(Vec::new());
        none.refuse(&none.take(&[]).expect("no key needed"));
        assert!(none.take(&[]).expect("no key needed").key.is_none());
        assert_eq!(none.all_refused(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn one_key_that_may_hold_is_enough() {
        let keys = keys(&["a", "b"]);
        keys.refuse(&keys.take(&[]).expect("a key"));
        assert_eq!(keys.all_refused(), None);
        let other = keys.take(&[]).expect("a key");
        keys.cool(&other, Some(Duration::from_secs(20)));
        assert_eq!(keys.all_refused(), None);
        keys.refuse(&other);
        assert_eq!(keys.all_refused(), Some(vec!["a".to_owned(), "b".to_owned()]));
    }
}
