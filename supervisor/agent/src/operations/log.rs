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

/// The places for operations beside those of requests. 256: the channels work on a few events at once, and the agent by itself on one
/// operation.
const OWN_PLACES: usize = 256;
/// How long a request waits, without that anything is written to the control socket. 2 s: only a supervisor that hangs takes longer, and
/// no client hangs with it. After it the request goes on, and the log says which operation may not be recorded.
const WRITE_WAIT: Duration = Duration::from_secs(2);
/// The most bytes of a text of an operation; what is longer is cut there, and ends in [`CUT`]. As the audit log has it.
pub(super) const MAX_TEXT_BYTES: usize = 512;
/// The end of a text that was cut.
pub(super) const CUT: &str = "…";

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
pub(super) type QueuePermit = OwnedPermit<QueuedOperation>;

/// Has operations recorded.
#[derive(Debug)]
pub(crate) struct OperationLog {
    sender: mpsc::Sender<QueuedOperation>,
    receiver: Mutex<Option<mpsc::Receiver<QueuedOperation>>>,
    /// How many were written.
    all_written: Arc<AtomicU64>,
}

impl OperationLog {
    /// A log for the operations of so many requests at once, of at most some 2 KiB each: a place is taken from the request until its
    /// operation was written to the control socket. A further operation begins when another ends.
    pub(crate) fn new(requests: u32) -> Self {
        // A place takes memory only while an operation is in it.
        let places = usize::try_from(requests).unwrap_or(usize::MAX >> 4).saturating_add(OWN_PLACES);
        let (sender, receiver) = mpsc::channel(places);
        Self { sender, receiver: Mutex::new(Some(receiver)), all_written: Arc::default() }
    }

    /// The operations to be written, for one writer: `None` for a further one. Once it is dropped nothing waits for a write.
    pub(crate) fn queue(&self) -> Option<mpsc::Receiver<QueuedOperation>> {
        self.receiver.lock().take()
    }

    /// Has an operation recorded. Returns once it was written to the control socket, or the supervisor hangs or is gone.
    pub(crate) async fn record(&self, operation: Operation) {
        if let Some(place) = self.reserve(&operation).await {
            self.write(place, operation).await;
        }
    }

    /// A place for an operation that has not begun; `None` if the supervisor hangs or is gone.
    pub(super) async fn reserve(&self, operation: &Operation) -> Option<QueuePermit> {
        match self.unless_stuck(Some(operation), self.sender.clone().reserve_owned()).await {
            Some(Ok(place)) => Some(place),
            // The control socket is gone, and so is this process soon.
            Some(Err(_)) | None => None,
        }
    }

    /// Writes an operation, and waits until that is done, or the supervisor hangs or is gone.
    pub(super) async fn write(&self, place: QueuePermit, operation: Operation) {
        let written = self.put(place, Some(operation.clone()));
        let _supervisor_gone = self.unless_stuck(Some(&operation), written).await;
    }

    /// Writes an operation for which nobody can wait.
    pub(super) fn write_later(&self, place: QueuePermit, operation: Operation) {
        let _unawaited = self.put(place, Some(operation));
    }

    /// Waits until all operations so far are written, or the supervisor hangs or is gone.
    pub(crate) async fn flush(&self) {
        let place = self.unless_stuck(None, self.sender.clone().reserve_owned()).await;
        if let Some(Ok(place)) = place {
            let _supervisor_gone = self.unless_stuck(None, self.put(place, None)).await;
        }
    }

    fn put(&self, place: QueuePermit, operation: Option<Operation>) -> oneshot::Receiver<()> {
        let (written, waits) = oneshot::channel();
        let all_written = Arc::clone(&self.all_written);
        place.send(QueuedOperation { operation: operation.map(bounded), all_written, written });
        waits
    }

    /// Waits as long as something is written from time to time; `None` if nothing is.
    async fn unless_stuck<F: Future>(&self, operation: Option<&Operation>, waiting: F) -> Option<F::Output> {
        let mut waiting = std::pin::pin!(waiting);
        loop {
            let before = self.all_written.load(Ordering::Relaxed);
            if let Ok(done) = timeout(WRITE_WAIT, waiting.as_mut()).await {
                return Some(done);
            }
            if self.all_written.load(Ordering::Relaxed) == before {
                log_unrecorded(operation);
                return None;
            }
        }
    }
}

/// Says which operation may be missing in the audit log; `None` for those that wait at the end.
fn log_unrecorded(operation: Option<&Operation>) {
    let Some(unsaid) = UNRECORDED.permit() else { return };
    let at_the_end = || Operation { verb: "flush".to_owned(), ..Operation::default() };
    let operation = bounded(operation.cloned().unwrap_or_else(at_the_end));
    let client = operation.client.unwrap_or_default();
    tracing::error!(
        verb = operation.verb,
        subject = operation.subject,
        client.uid,
        client.pid,
        client.subject,
        unsaid,
        "an operation may be missing in the audit log: the supervisor does not read what the agent tells it"
    );
}

fn bounded(mut operation: Operation) -> Operation {
    for text in [&mut operation.subject, &mut operation.problem] {
        if text.len() > MAX_TEXT_BYTES {
            text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES - CUT.len()));
            text.push_str(CUT);
        }
    }
    operation
}
