//! Answers that are late or mixed up. Each says which call it belongs to, by the order in which the calls
//! came.

use parking_lot::Mutex;

use prost::Message;
use talon_proto::plugin::ToolResultResponse;
use tokio::sync::oneshot;

use crate::reply::Reply;

/// What waits for the next call.
#[derive(Default)]
pub(crate) struct DeferredResults {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: usize,
    /// The id of a call whose answer is not ready before the next call comes, and that answer.
    unfinished: Option<(String, String)>,
    /// A call that waits for another's answer, and its own.
    alone: Option<(oneshot::Sender<ToolResultResponse>, ToolResultResponse)>,
}

/// A common bug: results are stored by call id, and the first one for an id is taken.
pub(crate) async fn mailbox(deferred: &DeferredResults, id: &str) -> Reply {
    let late = {
        let mut state = deferred.state.lock();
        state.calls += 1;
        let own = (id.to_owned(), format!("the work of call {}", state.calls));
        match state.unfinished.take() {
            None => {
                state.unfinished = Some(own);
                None
            }
            // The work of the previous call is done now, too, and is on top.
            Some(before) => Some(vec![before, own]),
        }
    };
    let Some(results) = late else {
        eprintln!("misbehave: the work takes long");
        return std::future::pending().await;
    };
    let first = results.into_iter().find(|(key, _)| key == id);
    let content = first.map(|(_, content)| content).unwrap_or_default();
    message(ToolResultResponse { call_id: id.to_owned(), content, ..Default::default() })
}

/// Swaps the complete answers of two calls.
pub(crate) async fn swap(deferred: &DeferredResults, id: &str) -> Reply {
    let (waits, answer) = {
        let mut state = deferred.state.lock();
        state.calls += 1;
        let content = format!("the work of call {}", state.calls);
        let own = ToolResultResponse { call_id: id.to_owned(), content, ..Default::default() };
        match state.alone.take() {
            None => {
                let (sender, receiver) = oneshot::channel();
                state.alone = Some((sender, own));
                (Some(receiver), None)
            }
            Some((other, others_own)) => {
                let _ = other.send(own);
                (None, Some(others_own))
            }
        }
    };
    if let Some(waits) = waits {
        eprintln!("misbehave: one call waits for another");
        return waits.await.map_or(Reply::Never, message);
    }
    answer.map_or(Reply::Never, message)
}

fn message(answer: ToolResultResponse) -> Reply {
    Reply::Message(answer.encode_to_vec().into())
}
