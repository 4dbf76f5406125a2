//! The queue of operations to the control socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use talon_listen::LogThrottle;
use talon_proto::agent::Operation;
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The most operations in flight, from the request until it was written to the control socket. 4096, of at most some 2 KiB: more than
/// clients may have under way with the default limits. A further one begins when another ends.
const MAX_OPERATIONS: usize = 4096;
/// How long a request waits, without that anything is written to the control socket. 2 s: only a supervisor that hangs takes longer, and
/// no client hangs with it. After it the request goes on, and the log says which operation may not be recorded.
const WRITE_WAIT: Duration = Duration::from_secs(2);
/// The most bytes of a text of an operation; what is longer is cut there. As the audit log has it.
pub(super) const MAX_TEXT_BYTES: usize = 512;

static UNRECORDED: LogThrottle = LogThrottle::new();

/// An operation that waits for the control socket.
#[derive(Debug)]
pub(crate) struct QueuedOperation {
    /// The operation; `None` for the end of those before it.
    operation: Option<Operation>,
    all_written: Arc<AtomicU64>,
    written: oneshot::Sender<()>,
}

impl QueuedOperation {
    /// What is to be written; `None` if nothing is.
    pub(crate) fn take(&mut self) -> Option<Operation> {
        self.operation.take()
    }

    /// It was written: its client is answered.
    pub(crate) fn set_written(self) {
        self.all_written.fetch_add(1, Ordering::Relaxed);
        // An error means that nobody waits for it any more.
        let _unawaited = self.written.send(());
    }
}

/// A place in the queue for one operation.
pub(super) type Place = OwnedPermit<QueuedOperation>;

/// Has operations recorded.
#[derive(Debug)]
pub(crate) struct OperationLog {
    sender: mpsc::Sender<QueuedOperation>,
    receiver: Mutex<Option<mpsc::Receiver<QueuedOperation>>>,
    /// How many were written.
    all_written: Arc<AtomicU64>,
}

impl Default for OperationLog {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_OPERATIONS);
        Self { sender, receiver: Mutex::new(Some(receiver)), all_written: Arc::default() }
    }
}

impl OperationLog {
    /// The operations to be written, for one writer: `None` for a further one. Once it is dropped nothing waits for a write.
    pub(crate) fn queue(&self) -> Option<mpsc::Receiver<QueuedOperation>> {
        self.receiver.lock().take()
    }

    /// Has an operation recorded. Returns once it was written to the control socket, or the supervisor hangs or is gone.
    pub(crate) async fn record(&self, operation: Operation) {
        let verb = operation.verb.clone();
        if let Some(place) = self.reserve(&verb).await {
            self.write(place, operation).await;
        }
    }

    /// A place for an operation that has not begun; `None` if the supervisor hangs or is gone.
    pub(super) async fn reserve(&self, verb: &str) -> Option<Place> {
        match self.unless_stuck(verb, self.sender.clone().reserve_owned()).await {
            Some(Ok(place)) => Some(place),
            // The control socket is gone, and so is this process soon.
            Some(Err(_)) | None => None,
        }
    }

    /// Writes an operation, and waits until that is done, or the supervisor hangs or is gone.
    pub(super) async fn write(&self, place: Place, operation: Operation) {
        let verb = operation.verb.clone();
        let written = self.put(place, Some(operation));
        let _supervisor_gone = self.unless_stuck(&verb, written).await;
    }

    /// Writes an operation for which nobody can wait.
    pub(super) fn write_later(&self, place: Place, operation: Operation) {
        let _unawaited = self.put(place, Some(operation));
    }

    /// Waits until all operations so far are written, or the supervisor hangs or is gone.
    pub(crate) async fn flush(&self) {
        if let Some(place) = self.reserve("flush").await {
            let _supervisor_gone = self.unless_stuck("flush", self.put(place, None)).await;
        }
    }

    fn put(&self, place: Place, operation: Option<Operation>) -> oneshot::Receiver<()> {
        let (written, waits) = oneshot::channel();
        let all_written = Arc::clone(&self.all_written);
        place.send(QueuedOperation { operation: operation.map(bounded), all_written, written });
        waits
    }

    /// Waits as long as something is written from time to time; `None` if nothing is.
    async fn unless_stuck<F: Future>(&self, verb: &str, waiting: F) -> Option<F::Output> {
        let mut waiting = std::pin::pin!(waiting);
        loop {
            let before = self.all_written.load(Ordering::Relaxed);
            if let Ok(done) = timeout(WRITE_WAIT, waiting.as_mut()).await {
                return Some(done);
            }
            if self.all_written.load(Ordering::Relaxed) == before {
                if let Some(unsaid) = UNRECORDED.permit() {
                    tracing::error!(
                        verb,
                        unsaid,
                        "an operation may be missing in the audit log: the supervisor does not read what the agent tells it"
                    );
                }
                return None;
            }
        }
    }
}

fn bounded(mut operation: Operation) -> Operation {
    for text in [&mut operation.subject, &mut operation.problem] {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    }
    operation
}
