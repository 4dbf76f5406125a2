//! What one client follows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ErrorData;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

use super::{FollowedResource, Subscriptions};
use crate::context::{Providers, ResourcePlace};

/// The most resources that a client follows at once: what it has open for its user. A further one gets an error.
const MAX_RESOURCES: usize = 64;

/// The subscriptions of one client. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct ClientSubscriptions {
    all: Subscriptions,
    places: Arc<Semaphore>,
    /// Those of `resources/subscribe`, by the client's address. Those of a stream belong to the stream.
    followed: Arc<Mutex<BTreeMap<String, StreamResources>>>,
}

/// Resources that are followed until this is dropped.
#[derive(Debug)]
pub(crate) struct StreamResources {
    _followed: Vec<FollowedResource>,
    _places: OwnedSemaphorePermit,
}

impl ClientSubscriptions {
    pub(crate) fn new(all: Subscriptions) -> Self {
        Self { all, places: Arc::new(Semaphore::new(MAX_RESOURCES)), followed: Arc::default() }
    }

    /// For another client.
    pub(crate) fn for_session(&self) -> Self {
        Self::new(self.all.clone())
    }

    /// Follows a resource until [`end`](Self::end). One that is followed already is so.
    ///
    /// # Errors
    /// It is not there, its plugin does not follow it, or it is one too many.
    pub(crate) async fn follow(&self, providers: &Providers, uri: &str) -> Result<(), ErrorData> {
        if self.followed.lock().contains_key(uri) {
            return Ok(());
        }
        let resources = self.follow_all(providers, &[uri.to_owned()]).await?;
        self.followed.lock().insert(uri.to_owned(), resources);
        Ok(())
    }

    pub(crate) fn end(&self, uri: &str) {
        let ended = self.followed.lock().remove(uri);
        drop(ended);
    }

    /// The addresses that are followed so.
    pub(crate) fn followed(&self) -> BTreeSet<String> {
        self.followed.lock().keys().cloned().collect()
    }

    /// Follows all of these for a stream, or none.
    ///
    /// # Errors
    /// As of [`follow`](Self::follow).
    pub(crate) async fn follow_all(
        &self,
        providers: &Providers,
        uris: &[String],
    ) -> Result<StreamResources, ErrorData> {
        let places = uris.iter().map(|uri| ResourcePlace::of_client(providers, uri));
        let places: BTreeSet<ResourcePlace> = places.collect::<Result<_, _>>()?;
        let count = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let Ok(permit) = Arc::clone(&self.places).try_acquire_many_owned(count) else {
            let text =
                format!("A client follows at most {MAX_RESOURCES} resources: unsubscribe from others first.");
            return Err(ErrorData::invalid_request(text, None));
        };
        let followed = self.all.follow(places.into_iter().collect()).await?;
        Ok(StreamResources { _followed: followed, _places: permit })
    }

    /// Changes from now on.
    pub(crate) fn updates(&self) -> UpdateFollower {
        UpdateFollower(self.all.0.updates.subscribe())
    }
}

/// Follows the changes for one client.
#[derive(Debug)]
pub(crate) struct UpdateFollower(broadcast::Receiver<Arc<str>>);

impl UpdateFollower {
    /// The addresses among `followed` that changed next. A client that is too slow reads all of them again. May be dropped and
    /// called again.
    pub(crate) async fn next(&mut self, followed: impl Fn() -> BTreeSet<String>) -> BTreeSet<String> {
        loop {
            let changed = match self.0.recv().await {
                Ok(uri) => followed().take(&*uri).into_iter().collect(),
                Err(RecvError::Lagged(_)) => followed(),
                // The process ends.
                Err(RecvError::Closed) => std::future::pending().await,
            };
            if !changed.is_empty() {
                return changed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: MCP-58
    #[tokio::test]
    async fn a_client_hears_of_what_it_follows_and_of_all_of_it_when_it_is_too_slow() {
        let (sender, receiver) = broadcast::channel(2);
        let mut updates = UpdateFollower(receiver);
        let followed = || ["p+x:1", "p+x:2"].map(str::to_owned).into();
        for uri in ["p+x:3", "p+x:2"] {
            sender.send(uri.into()).unwrap();
        }
        assert_eq!(updates.next(followed).await, ["p+x:2".to_owned()].into());
        for _ in 0..5 {
            sender.send("p+x:3".into()).unwrap();
        }
        assert_eq!(updates.next(followed).await, followed());
    }
}
