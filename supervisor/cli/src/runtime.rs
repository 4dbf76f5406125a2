//! How verbs run their futures.

use crate::failure::Failure;
use crate::signals::termination_signal;

/// Runs on the current thread, which is enough for a client and starts faster than a pool.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the runtime: {error}")))?
        .block_on(future)
}

/// For verbs that may start another program: its connection is served on other threads while the verb blocks.
pub(crate) fn block_on_pool<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start the runtime: {error}")))?
        .block_on(future)
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
