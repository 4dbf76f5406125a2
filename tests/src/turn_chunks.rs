//! Reads the chunks of a turn over `agent.sock`.

use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{Approval, Chunk};
use tonic::Streaming;

/// What is found in the next chunk that has it.
///
/// # Panics
/// If the stream ends or breaks before.
pub async fn next_chunk<T>(stream: &mut Streaming<Chunk>, find: impl Fn(&Kind) -> Option<T>) -> T {
    loop {
        let chunk = stream.message().await.expect("the stream is whole").expect("it has not ended");
        if let Some(found) = chunk.kind.as_ref().and_then(&find) {
            return found;
        }
    }
}

/// An approval that waits.
#[must_use]
pub fn pending_approval(kind: &Kind) -> Option<Approval> {
    match kind {
        Kind::Approval(approval) if approval.state == "pending" => Some(approval.clone()),
        _ => None,
    }
}

/// The answer that ends the turn.
///
/// # Panics
/// If the turn failed.
#[must_use]
pub fn final_answer(kind: &Kind) -> Option<String> {
    match kind {
        Kind::Done(done) => Some(done.text.clone()),
        Kind::Error(error) => panic!("{error:?}"),
        _ => None,
    }
}
