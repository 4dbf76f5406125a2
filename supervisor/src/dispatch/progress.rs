//! `ExecuteStreaming`: one call, with progress updates before the answer.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use talon_guard::{ArcById, ProgressObserver};
use talon_proto::host::{ExecuteRequest, ExecuteUpdate, Progress, execute_update};
use talon_sanitize::Sanitized;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status};

use super::dispatcher::Dispatcher;
use super::execute::accept;
use crate::audit::Audit;
use crate::receipts::Receipts;
use crate::to_wire::wire;

/// How many progress updates are buffered for a slow reader; then the oldest are dropped. Enough for about a
/// second.
const PROGRESS_ROOM: usize = 16;

/// Like [`execute`](super::execute), with progress updates before the answer.
pub(crate) fn execute_streaming(
    dispatcher: &Arc<Dispatcher>,
    audit: &Audit,
    receipts: &Receipts,
    request: Request<ExecuteRequest>,
) -> Result<Response<BoxStream<'static, Result<ExecuteUpdate, Status>>>, Status> {
    let (sender, updates) = broadcast::channel(PROGRESS_ROOM);
    let observer = ArcById::<dyn ProgressObserver>::new(Arc::new(ProgressForwarder(sender)));
    let accepted = accept(dispatcher, audit, receipts, request, Some(observer))?;
    let dispatcher = Arc::clone(dispatcher);
    // The call runs on a separate task, so that a slow reader delays neither its queueing nor its deadline.
    // Dropping the stream ends the call.
    let call = tokio::spawn(async move { accepted.run(&dispatcher).await });
    let state = Some((updates, AbortOnDropHandle::new(call)));
    let updates = futures_util::stream::unfold(state, |state| async move {
        let (mut updates, mut call) = state?;
        tokio::select! {
            // Progress that was reported before the answer is sent before it.
            biased;
            Some(progress) = next(&mut updates) => {
                let kind = Some(execute_update::Kind::Progress(progress));
                Some((Ok(ExecuteUpdate { kind }), Some((updates, call))))
            }
            answer = &mut call => {
                let done = answer.unwrap_or_else(|_| Err(Status::internal("internal error")));
                let kind = |answer| ExecuteUpdate { kind: Some(execute_update::Kind::Done(answer)) };
                Some((done.map(kind), None))
            }
        }
    });
    Ok(Response::new(updates.boxed()))
}

/// The next progress update; `None` once all senders are gone. Updates that a slow reader missed are skipped.
async fn next(updates: &mut broadcast::Receiver<Progress>) -> Option<Progress> {
    loop {
        match updates.recv().await {
            Ok(progress) => return Some(progress),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

/// Forwards a call's progress to the stream.
struct ProgressForwarder(broadcast::Sender<Progress>);

impl ProgressObserver for ProgressForwarder {
    fn progress(&self, progress: f64, total: Option<f64>, message: &Sanitized) {
        // An error only means that the client has gone away.
        let _ = self.0.send(Progress { progress, total, message: wire(message) });
    }
}
