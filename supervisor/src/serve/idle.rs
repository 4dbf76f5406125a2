//! When a supervisor that was started for one user has no more work.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_listen::ConnectionLimiter;
use tokio::time::{Instant, interval};

/// How often one idle time is divided into looks, which bounds how late its end is noticed.
const LOOKS: u32 = 30;

/// The connections of clients on all sockets. Clones share state.
#[derive(Clone, Default)]
pub(super) struct ClientConnections(Arc<Mutex<Vec<Arc<ConnectionLimiter>>>>);

/// How many connections are open, and how many there were.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct ConnectionCount {
    open: usize,
    ever: u64,
}

impl ClientConnections {
    /// Counts with these limiters from now on.
    pub(super) fn count_with(&self, limiters: Vec<Arc<ConnectionLimiter>>) {
        *self.0.lock() = limiters;
    }

    fn count(&self) -> ConnectionCount {
        self.0.lock().iter().fold(ConnectionCount::default(), |sum, limiter| {
            let (open, ever) = limiter.usage();
            ConnectionCount { open: sum.open + open, ever: sum.ever.wrapping_add(ever) }
        })
    }
}

/// Resolves when for `limit` no client was connected and no call in flight. Never without a limit.
pub(super) async fn wait_until_idle(
    limit: Option<Duration>,
    clients: ClientConnections,
    is_calling: impl Fn() -> bool,
) {
    let Some(limit) = limit.filter(|limit| !limit.is_zero()) else { return std::future::pending().await };
    let mut looks = interval((limit / LOOKS).max(Duration::from_millis(1)));
    let mut before = clients.count();
    let mut idle_since = Instant::now();
    loop {
        looks.tick().await;
        let now = clients.count();
        // One that came and went between two looks counts, too.
        if now.open > 0 || now != before || is_calling() {
            idle_since = Instant::now();
        }
        before = now;
        if idle_since.elapsed() >= limit {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::time::{advance, sleep};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(1800);

    // Promises: LIFE-34
    #[tokio::test(start_paused = true)]
    async fn clients_and_calls_begin_the_idle_time_anew() {
        let limiter = ConnectionLimiter::new(5, 5);
        let clients = ClientConnections::default();
        clients.count_with(vec![Arc::clone(&limiter)]);
        let calling = Arc::new(AtomicBool::new(false));
        let is_calling = Arc::clone(&calling);
        let began = Instant::now();
        let idle =
            tokio::spawn(wait_until_idle(Some(LIMIT), clients, move || is_calling.load(Ordering::Relaxed)));
        // A connection for an hour, then one between two looks, then a call.
        let open = limiter.acquire(1).unwrap();
        sleep(LIMIT * 2).await;
        assert!(!idle.is_finished());
        drop(open);
        sleep(LIMIT / 2).await;
        drop(limiter.acquire(1));
        sleep(LIMIT / 2 + LIMIT / 4).await;
        assert!(!idle.is_finished());
        calling.store(true, Ordering::Relaxed);
        sleep(LIMIT).await;
        assert!(!idle.is_finished());
        calling.store(false, Ordering::Relaxed);
        idle.await.unwrap();
        assert!(began.elapsed() >= LIMIT * 4);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_it_is_never_idle() {
        for limit in [None, Some(Duration::ZERO)] {
            let idle = tokio::spawn(wait_until_idle(limit, ClientConnections::default(), || false));
            advance(LIMIT * 100).await;
            assert!(!idle.is_finished());
            idle.abort();
        }
    }
}
