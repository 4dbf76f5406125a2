//! `ExecuteStreaming`: one call, with its progress and output before the answer.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use talon_guard::{ArcById, ProgressObserver};
use talon_proto::host::execute_update::Kind;
use talon_proto::host::{ExecuteRequest, ExecuteResponse, ExecuteUpdate, Progress};
use talon_sanitize::Sanitized;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::task::AbortOnDropHandle;
use tonic::{Request, Response, Status};

use super::dispatcher::Dispatcher;
use super::execute::{AcceptedCall, CallObservers, accept};
use super::output_queue::OutputQueue;
use crate::audit::Audit;
use crate::receipts::Receipts;
use crate::to_wire::wire;

/// How many progress updates are buffered for a slow reader; then the oldest are dropped. Enough for about a
/// second.
const PROGRESS_ROOM: usize = 16;

/// Like [`execute`](super::execute), with progress and output before the answer.
pub(crate) fn execute_streaming(
    dispatcher: &Arc<Dispatcher>,
    audit: &Audit,
    receipts: &Receipts,
    request: Request<ExecuteRequest>,
) -> Result<Response<BoxStream<'static, Result<ExecuteUpdate, Status>>>, Status> {
    let (sender, updates) = broadcast::channel(PROGRESS_ROOM);
    let progress = ArcById::<dyn ProgressObserver>::new(Arc::new(ProgressForwarder(sender)));
    let output = Arc::new(OutputQueue::default());
    let observers = CallObservers { progress, output: ArcById::new(Arc::clone(&output) as _) };
    let accepted = accept(dispatcher, audit, receipts, request, Some(observers))?;
    let call = run(accepted, Arc::clone(dispatcher));
    let state = StreamState::Running { updates, output, call };
    let updates = futures_util::stream::unfold(state, StreamState::next);
    Ok(Response::new(updates.boxed()))
}

/// Runs the call on a separate task, so that a slow reader delays neither its queueing nor its deadline. Dropping the handle
/// ends the call.
fn run(call: AcceptedCall, dispatcher: Arc<Dispatcher>) -> CallHandle {
    AbortOnDropHandle::new(tokio::spawn(async move { call.run(&dispatcher).await }))
}

type CallHandle = AbortOnDropHandle<Result<ExecuteResponse, Status>>;

/// What the stream still has to send.
enum StreamState {
    Running { updates: broadcast::Receiver<Progress>, output: Arc<OutputQueue>, call: CallHandle },
    Answered(Box<Result<ExecuteResponse, Status>>),
    Ended,
}

impl StreamState {
    async fn next(self) -> Option<(Result<ExecuteUpdate, Status>, Self)> {
        let (mut updates, output, mut call) = match self {
            Self::Running { updates, output, call } => (updates, output, call),
            Self::Answered(answer) => {
                return Some((answer.map(|answer| update(Kind::Done(answer))), Self::Ended));
            }
            Self::Ended => return None,
        };
        let (kind, state) = tokio::select! {
            // What was reported before the answer is sent before it.
            biased;
            Some(progress) = next(&mut updates) => {
                (Kind::Progress(progress), Self::Running { updates, output, call })
            }
            told = output.next() => (Kind::Output(told), Self::Running { updates, output, call }),
            answer = &mut call => {
                let answer = answer.unwrap_or_else(|_| Err(Status::internal("internal error")));
                match output.take() {
                    Some(told) => (Kind::Output(told), Self::Answered(Box::new(answer))),
                    None => return Some((answer.map(|answer| update(Kind::Done(answer))), Self::Ended)),
                }
            }
        };
        Some((Ok(update(kind)), state))
    }
}

fn update(kind: Kind) -> ExecuteUpdate {
    ExecuteUpdate { kind: Some(kind) }
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
