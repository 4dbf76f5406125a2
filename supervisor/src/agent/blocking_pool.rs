//! Runs blocking file access that may never return: a directory on an unreachable server cannot be
//! interrupted.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// How long to wait for a result. Reading a few small files takes milliseconds, and a start or a reload waits
/// for it.
const WAIT: Duration = Duration::from_secs(3);
/// Maximum number of hanging threads; otherwise each reload would add one.
const MAX_THREADS: usize = 4;

/// A pool for such work.
pub(super) struct BlockingPool {
    threads: Arc<Semaphore>,
    wait: Duration,
}

impl BlockingPool {
    pub(super) fn new() -> Self {
        Self { threads: Arc::new(Semaphore::new(MAX_THREADS)), wait: WAIT }
    }

    /// Runs `work` on a separate thread and returns its result, if it comes in time. The thread is never
    /// joined, not even at exit.
    ///
    /// # Errors
    /// `TimedOut` if too many threads hang already, and errors of starting a thread.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let hangs = || io::Error::new(io::ErrorKind::TimedOut, "it hangs");
        let permit = Arc::clone(&self.threads).try_acquire_owned().map_err(|_| hangs())?;
        let (tell, told) = oneshot::channel();
        std::thread::Builder::new().name("agent-files".to_owned()).spawn(move || {
            let done = work();
            drop(permit);
            // An error means that the caller has stopped waiting.
            let _ = tell.send(done);
        })?;
        match timeout(self.wait, told).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => Err(io::Error::other("it panicked")),
            Err(_) => Err(hangs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn what_hangs_is_not_waited_for_and_does_not_pile_up() {
        let bounded = BlockingPool { wait: Duration::from_millis(1), ..BlockingPool::new() };
        let mut held = Vec::new();
        for _ in 0..MAX_THREADS + 1 {
            let (ends, end) = mpsc::channel::<()>();
            held.push(ends);
            let error = bounded.run(move || end.recv().is_ok()).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        }
        assert_eq!(bounded.threads.available_permits(), 0);
        drop(held);
        let _all = bounded.threads.acquire_many(u32::try_from(MAX_THREADS).unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn what_ends_is_given() {
        assert_eq!(BlockingPool::new().run(|| 7).await.unwrap(), 7);
    }
}
