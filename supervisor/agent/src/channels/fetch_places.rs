//! How many messages' files are fetched at once.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most messages whose files are fetched at once. 4: each holds `agent.media.request_bytes` and one more file, so 64 MiB in all. Further
/// ones wait.
const MAX_FETCHING: usize = 4;
/// The most of them of one channel. 2: a slow one holds a place for minutes, and leaves the others to other channels.
const MAX_OF_CHANNEL: usize = 2;

/// The places for messages whose files are fetched.
#[derive(Debug)]
pub(super) struct FetchPlaces {
    all: Arc<Semaphore>,
    /// By the name of a channel, while one is taken.
    channels: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A place. To be kept as long as the files are held.
#[must_use]
#[derive(Debug)]
pub(super) struct FetchPlace {
    _of_channel: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Default for FetchPlaces {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_FETCHING)), channels: Mutex::default() }
    }
}

impl FetchPlaces {
    /// Waits for a place, and takes it.
    pub(super) async fn take(&self, channel: &str) -> FetchPlace {
        let of_channel = self.of_channel(channel);
        // None is ever closed. The channel's first: who waits for it takes no place of the others.
        let of_channel = of_channel.acquire_owned().await.ok();
        let of_all = Arc::clone(&self.all).acquire_owned().await.ok();
        FetchPlace { _of_channel: of_channel, _of_all: of_all }
    }

    fn of_channel(&self, channel: &str) -> Arc<Semaphore> {
        let mut channels = self.channels.lock();
        channels.retain(|_, places| Arc::strong_count(places) > 1);
        let places = channels.entry(channel.to_owned());
        Arc::clone(places.or_insert_with(|| Arc::new(Semaphore::new(MAX_OF_CHANNEL))))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    // Promises: GW-229
    #[tokio::test]
    async fn files_of_few_messages_are_fetched_at_once_and_a_slow_channel_leaves_places_for_others() {
        let places = FetchPlaces::default();
        let is_free = |channel| places.take(channel).now_or_never().is_some();
        let slow = [places.take("hook").await, places.take("hook").await];
        assert!(!is_free("hook") && is_free("telegram"));
        let others = [places.take("telegram").await, places.take("sms").await];
        assert!(!is_free("telegram") && !is_free("mail"));
        drop(others);
        assert!(!is_free("hook") && is_free("mail"));
        drop(slow);
        assert!(is_free("hook"));
        assert_eq!(places.channels.lock().len(), 1);
    }
}
