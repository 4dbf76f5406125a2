//! Requests whose answer serves all who ask at the same time.
//!
//! Who asks while nobody does is answered by a request of their own. Who asks while one is being made waits for its end, and shares the
//! next one with all others who wait. So an answer is never older than the question, as if each had asked alone, and of a thousand who
//! ask at once two requests are made.

use std::collections::HashMap;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use parking_lot::Mutex;

/// `None`: the request panicked. One that unwound would not wake those who wait for it.
type SharedAnswer<T> = Shared<BoxFuture<'static, Option<T>>>;

/// Requests with answers `T`; those of different keys have nothing to do with each other.
#[derive(Debug)]
pub struct SharedRequests<K: Hash + Eq, T>(Mutex<HashMap<K, KeyRequests<T>>>);

impl<K: Hash + Eq, T> Default for SharedRequests<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// The requests of a key: the one that is being made, and the one after it. They are there for as long as somebody waits for either.
#[derive(Debug)]
struct KeyRequests<T> {
    /// Of the latest one.
    answer: SharedAnswer<T>,
    /// Set when the latest one is made: it serves nobody who asks later.
    begun: Arc<AtomicBool>,
    /// Who wait for any of them.
    waiting: usize,
}

/// The place of one who waits.
struct WaiterGuard<'r, K: Hash + Eq, T> {
    requests: &'r SharedRequests<K, T>,
    key: K,
}

impl<K, T> SharedRequests<K, T>
where
    K: Hash + Eq + Clone,
    T: Clone + Send + Sync + 'static,
{
    /// The answer of a request that begins now or later: of `request`, or of one that somebody else makes. It is made by whoever waits
    /// for it, and no longer if all of them give up.
    ///
    /// # Panics
    /// If the request does: so do all who wait for it, and nobody who waits for the next one.
    pub async fn ask<F>(&self, key: K, request: impl FnOnce() -> F) -> T
    where
        F: Future<Output = T> + Send + 'static,
    {
        let (answer, place) = self.join(key, request);
        let answer = answer.await;
        drop(place);
        answer.unwrap_or_else(|| resume_unwind(Box::new("a request that others wait for as well panicked")))
    }

    fn join<F>(&self, key: K, request: impl FnOnce() -> F) -> (SharedAnswer<T>, WaiterGuard<'_, K, T>)
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut requests = self.0.lock();
        let latest = requests.get_mut(&key);
        if let Some(latest) = latest
            && !latest.begun.load(Ordering::Acquire)
        {
            latest.waiting += 1;
            return (latest.answer.clone(), WaiterGuard { requests: self, key });
        }
        let (before, waiting) = match requests.get(&key) {
            Some(latest) => (Some(latest.answer.clone()), latest.waiting),
            None => (None, 0),
        };
        let (begun, request) = (Arc::<AtomicBool>::default(), request());
        let begins = Arc::clone(&begun);
        let answer = async move {
            if let Some(before) = before {
                before.await;
            }
            begins.store(true, Ordering::Release);
            AssertUnwindSafe(request).catch_unwind().await.ok()
        };
        let answer: SharedAnswer<T> = answer.boxed().shared();
        let latest = KeyRequests { answer: answer.clone(), begun, waiting: waiting + 1 };
        requests.insert(key.clone(), latest);
        (answer, WaiterGuard { requests: self, key })
    }
}

impl<K: Hash + Eq, T> Drop for WaiterGuard<'_, K, T> {
    fn drop(&mut self) {
        let mut requests = self.requests.0.lock();
        let Some(latest) = requests.get_mut(&self.key) else { return };
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

    // Promises: GW-292
    #[tokio::test]
    async fn a_request_is_waited_for_also_where_those_who_waited_before_gave_up() {
        let (requests, server) = (SharedRequests::default(), Server::new());
        let mut first = ask(&requests, &server, 0);
        let mut second = ask(&requests, &server, 0);
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        drop(second);
        let mut third = ask(&requests, &server, 0);
        assert!(third.as_mut().now_or_never().is_none());
        assert_eq!(server.asked.load(Ordering::Relaxed), 1, "the first one has no answer yet");
        server.may_answer.add_permits(2);
        assert_eq!((first.await, third.await), (1, 2));
        assert!(requests.0.lock().is_empty());
    }

    async fn panic_when(allowed: Arc<Semaphore>) -> usize {
        let _permit = allowed.acquire().await;
        panic!("as the test wants it")
    }

    // Promises: GW-292
    #[tokio::test]
    async fn a_panic_is_of_those_who_wait_for_it_and_not_of_the_next() {
        let (requests, allowed) = (SharedRequests::<u8, usize>::default(), Arc::new(Semaphore::new(0)));
        let panics = requests.ask(0, || panic_when(Arc::clone(&allowed)));
        let mut panics = Box::pin(AssertUnwindSafe(panics).catch_unwind());
        assert!(panics.as_mut().now_or_never().is_none());
        let mut next = Box::pin(requests.ask(0, || async { 2 }));
        assert!(next.as_mut().now_or_never().is_none());
        allowed.add_permits(1);
        // It makes the one before as well.
        assert_eq!(next.await, 2);
        assert!(panics.await.is_err());
        assert!(requests.0.lock().is_empty());
    }
}
