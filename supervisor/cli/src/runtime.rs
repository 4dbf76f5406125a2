//! How verbs run their futures.

use std::io;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::signals::termination_signal;

/// How long threads that still read or write may go on once a verb is over. What they do in pieces ends with
/// the verb, well within that; a thread that waits for a pipe or for a file of a server that is away ends
/// with the process.
const BLOCKED_THREADS_TIMEOUT: Duration = Duration::from_millis(500);

/// Runs a verb, and does not wait for blocked threads after it. Dropping the runtime would, for ever.
pub(crate) fn run<T>(runtime: Runtime, future: impl Future<Output = T>) -> T {
    let result = runtime.block_on(future);
    runtime.shutdown_timeout(BLOCKED_THREADS_TIMEOUT);
    result
}

/// Why there is no runtime, as the failure of a verb.
pub(crate) fn not_started(error: io::Error) -> Failure {
    Failure::failed(format!(
        "cannot start the runtime: {error}; see whether the process limit (ulimit -u) is reached"
    ))
}

/// Runs on the current thread, which is enough for a client and starts faster than a pool.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    run(runtime.map_err(not_started)?, future)
}

/// For verbs that may start another program: its connection is served on other threads while the verb blocks.
pub(crate) fn block_on_pool<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    run(runtime.map_err(not_started)?, future)
}

/// The same for verbs that write files: on a signal, the future is dropped, which deletes incomplete files.
pub(crate) fn block_on_until_signalled<T>(
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    block_on_pool(async {
        let terminated = termination_signal()
            .map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
        tokio::select! {
            result = future => result,
            () = terminated => Err(Failure::failed("interrupted")),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    // Promises: CLI-49
    #[test]
    fn a_blocked_thread_holds_no_verb() {
        let (release, blocked) = mpsc::channel::<()>();
        let done = block_on_pool(async move {
            let (begin, begun) = tokio::sync::oneshot::channel();
            tokio::task::spawn_blocking(move || {
                let _ = begin.send(());
                blocked.recv()
            });
            Ok(begun.await)
        });
        assert_eq!(done.unwrap(), Ok(()));
        // It was blocked all the time: the channel is still open.
        drop(release);
    }
}
