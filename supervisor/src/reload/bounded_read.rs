//! Reads from file systems that may not answer, such as a mount whose server is away.
//!
//! Nothing ends a thread that the kernel holds. So the wait for it is bounded, and while one is held no
//! second one is sent after it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::blocking::blocking;

/// How long files may take. A configuration is read in a millisecond; where digests are configured, whole
/// programs are read, gigabytes of them on a slow disk within this. After it the reload is refused.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Why nothing was read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StuckReadError {
    /// The files do not answer.
    #[error(
        "the configuration and the plugins' files could not be read within {} s: see whether a file system hangs (`mount`, \
         the kernel's log), and reload again",
        READ_TIMEOUT.as_secs()
    )]
    TimedOut,
    /// Nor have they since an earlier reload.
    #[error(
        "an earlier reload is still held by a file system that does not answer: see which one hangs (`mount`, the kernel's \
         log), and reload again"
    )]
    StillHeld,
}

/// Reads one thing at a time. Clones share state.
#[derive(Debug, Clone)]
pub(super) struct BoundedReader {
    free: Arc<Semaphore>,
}

impl BoundedReader {
    pub(super) fn new() -> Self {
        Self { free: Arc::new(Semaphore::new(1)) }
    }

    /// Runs blocking work and waits for it, within bounds. Panics are propagated.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StuckReadError> {
        let held = Arc::clone(&self.free).try_acquire_owned().map_err(|_| StuckReadError::StillHeld)?;
        let reading = blocking(move || {
            let done = work();
            drop(held);
            done
        });
        timeout(READ_TIMEOUT, reading).await.map_err(|_| StuckReadError::TimedOut)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    // Promises: RELOAD-15
    #[tokio::test(start_paused = true)]
    async fn a_file_system_that_hangs_is_waited_for_once_and_not_for_ever() {
        let reader = BoundedReader::new();
        assert_eq!(reader.read(|| 1).await, Ok(1));
        let (release, held) = mpsc::channel::<()>();
        let (ended, end) = tokio::sync::oneshot::channel();
        let stuck = tokio::spawn({
            let reader = reader.clone();
            async move {
                reader
                    .read(move || {
                        let _ = held.recv();
                        let _ = ended.send(());
                    })
                    .await
            }
        });
        tokio::task::yield_now().await;
        tokio::time::advance(READ_TIMEOUT).await;
        assert_eq!(stuck.await.unwrap(), Err(StuckReadError::TimedOut));
        assert_eq!(reader.read(|| 2).await, Err(StuckReadError::StillHeld));
        // Once the file system answers, the next reload reads.
        drop(release);
        end.await.unwrap();
        let next = loop {
            match reader.read(|| 3).await {
                Err(StuckReadError::StillHeld) => tokio::task::yield_now().await,
                done => break done,
            }
        };
        assert_eq!(next, Ok(3));
    }
}
