//! Signals that end a verb.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::signal::unix::{SignalKind, signal};

/// Resolves at the first signal that asks this process to exit. From now on these signals do not kill it, so
/// that the verb can clean up first.
pub(crate) fn termination_signal() -> io::Result<impl Future<Output = ()>> {
    first_of([SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()])
}

/// The same without Ctrl-C, for verbs in which it means something else.
pub(crate) fn termination_signal_but_interrupt() -> io::Result<impl Future<Output = ()>> {
    first_of([SignalKind::terminate(), SignalKind::hangup()])
}

fn first_of<const N: usize>(kinds: [SignalKind; N]) -> io::Result<impl Future<Output = ()>> {
    let mut signals = kinds.into_iter().map(signal).collect::<io::Result<Vec<_>>>()?;
    Ok(poll_fn(move |context| {
        let arrived = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if arrived { Poll::Ready(()) } else { Poll::Pending }
    }))
}
