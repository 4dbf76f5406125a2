//! Requests whose answer serves all who ask at the same time.
//!
//! Who asks while nobody does is answered by a request of their own. Who asks while one is being made waits for its end, and shares the
//! next one with all others who wait. So an answer is never older than the question, as if each had asked alone, and of a thousand who
//! ask at once two requests are made.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;

type SharedAnswer<T> = Shared<BoxFuture<'static, T>>;

/// Requests with answers `T`; those of different keys have nothing to do with each other.
#[derive(Debug)]
pub struct SharedRequests<K: Hash + Eq, T>(Mutex<HashMap<K, SharedRequest<T>>>);

impl<K: Hash + Eq, T> Default for SharedRequests<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// The latest request of a key. It is there for as long as somebody waits for it.
#[derive(Debug)]
struct SharedRequest<T> {
    /// Set when it is made: it serves nobody who asks later.
    begun: Arc<AtomicBool>,
    answer: SharedAnswer<T>,
    waiting: usize,
}

/// The place of one who waits.
struct Place<'r, K: Hash + Eq, T> {
    requests: &'r SharedRequests<K, T>,
    key: K,
    begun: Arc<AtomicBool>,
}

impl<K, T> SharedRequests<K, T>
where
    K: Hash + Eq + Clone,
    T: Clone + Send + Sync + 'static,
{
    /// The answer of a request that begins now or later: of `request`, or of one that somebody else makes. It is made by whoever waits
    /// for it, and no longer if all of them give up.
    pub async fn ask<F>(&self, key: K, request: impl FnOnce() -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let (answer, place) = self.join(key, request);
        let answer = answer.await;
        drop(place);
        answer
    }

    fn join<F>(&self, key: K, request: impl FnOnce() -> F) -> (SharedAnswer<T>, Place<'_, K, T>)
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut requests = self.0.lock();
        let latest = requests.get_mut(&key);
        if let Some(latest) = latest
            && !latest.begun.load(Ordering::Acquire)
        {
            latest.waiting += 1;
            let place = Place { requests: self, key, begun: Arc::clone(&latest.begun) };
            return (latest.answer.clone(), place);
        }
        let before = requests.get(&key).map(|latest| latest.answer.clone());
        let (begun, request) = (Arc::<AtomicBool>::default(), request());
        let begins = Arc::clone(&begun);
        let answer = async move {
            if let Some(before) = before {
                before.await;
            }
            begins.store(true, Ordering::Release);
            request.await
        };
        let answer = answer.boxed().shared();
        let latest = SharedRequest { begun: Arc::clone(&begun), answer: answer.clone(), waiting: 1 };
        requests.insert(key.clone(), latest);
        (answer, Place { requests: self, key, begun })
    }
}

impl<K: Hash + Eq, T> Drop for Place<'_, K, T> {
    fn drop(&mut self) {
        let mut requests = self.requests.0.lock();
        let latest = requests.get_mut(&self.key).filter(|latest| Arc::ptr_eq(&latest.begun, &self.begun));
        let Some(latest) = latest else { return };
        latest.waiting -= 1;
        if latest.waiting == 0 {
            requests.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::Semaphore;

    use super::*;

    /// A server that answers with the number of the request, when it may.
    struct Server {
        asked: AtomicUsize,
        may_answer: Semaphore,
    }

    impl Server {
        fn new() -> Arc<Self> {
            Arc::new(Self { asked: AtomicUsize::new(0), may_answer: Semaphore::new(0) })
        }

        async fn answer(self: Arc<Self>) -> usize {
            let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
            self.may_answer.acquire().await.expect("it is open").forget();
            number
        }
    }

    fn ask<'r>(
        requests: &'r SharedRequests<u8, usize>,
        server: &Arc<Server>,
        key: u8,
    ) -> BoxFuture<'r, usize> {
        let server = Arc::clone(server);
        async move { requests.ask(key, || server.answer()).await }.boxed()
    }

    // Promises: GW-292
    #[tokio::test]
    async fn who_asks_while_others_wait_shares_a_request_that_begins_later() {
        let (requests, server) = (SharedRequests::default(), Server::new());
        let mut first = ask(&requests, &server, 0);
        assert!(first.as_mut().now_or_never().is_none());
        let mut later: Vec<_> = (0..50).map(|_| ask(&requests, &server, 0)).collect();
        for one in &mut later {
            assert!(one.as_mut().now_or_never().is_none());
        }
        let mut other = ask(&requests, &server, 1);
        assert!(other.as_mut().now_or_never().is_none());
        assert_eq!(server.asked.load(Ordering::Relaxed), 2, "one of each key");
        server.may_answer.add_permits(1);
        assert_eq!(first.await, 1);
        for one in &mut later {
            assert!(one.as_mut().now_or_never().is_none(), "an answer from before the question is none");
        }
        server.may_answer.add_permits(2);
        for one in later {
            assert_eq!(one.await, 3);
        }
        assert_eq!(other.await, 2);
        assert!(requests.0.lock().is_empty(), "what nobody waits for is forgotten");
    }

    // Promises: GW-292
    #[tokio::test]
    async fn who_gives_up_holds_up_nobody_and_leaves_nothing() {
        let (requests, server) = (SharedRequests::default(), Server::new());
        let mut first = ask(&requests, &server, 0);
        let mut second = ask(&requests, &server, 0);
        let mut third = ask(&requests, &server, 0);
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        drop((first, second));
        server.may_answer.add_permits(2);
        assert_eq!(third.await, 2);
        let mut alone = ask(&requests, &server, 0);
        assert!(alone.as_mut().now_or_never().is_none());
        drop(alone);
        assert!(requests.0.lock().is_empty());
    }
}
