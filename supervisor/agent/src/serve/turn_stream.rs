//! The chunks of a turn, for the client that asked.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt as _};
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{Chunk, Started};
use tonic::Status;

use crate::turns::{ChunkFilter, RunningTurn, Subscription};

/// The chunks of a turn, to one client.
pub(super) type Chunks = BoxStream<'static, Result<Chunk, Status>>;

/// The stream of a turn that somebody asked for. Dropping it cancels the turn, unless the turn waits, or has waited, for
/// a person, or goes on without anybody.
pub(super) fn asked(following: Subscription, running: Arc<RunningTurn>, is_detached: bool) -> Chunks {
    if is_detached {
        following.boxed()
    } else {
        CancelOnDropStream { following, running, ended: false, may_wait: true }.boxed()
    }
}

/// The stream of a turn that nobody else can follow. Dropping it cancels the turn.
pub(super) fn of_no_session(following: Subscription, running: Arc<RunningTurn>) -> Chunks {
    CancelOnDropStream { following, running, ended: false, may_wait: false }.boxed()
}

/// The stream of a turn that was asked for before, and runs.
///
/// # Errors
/// RESOURCE_EXHAUSTED if too many follow it.
pub(super) fn joined(session: &str, running: &RunningTurn, filter: ChunkFilter) -> Result<Chunks, Status> {
    let started = repeated(session, running.turn(), &running.correlation_id);
    let following = running.hub.follow(|at| vec![started, Kind::Loop(at.clone())])?;
    Ok(following.filtered(filter).boxed())
}

/// The stream of a turn that was asked for before, and is over.
pub(super) fn ended(session: &str, turn: u64, end: Kind) -> Chunks {
    let chunks = [repeated(session, turn, ""), end].map(|kind| Ok(Chunk { kind: Some(kind) }));
    stream::iter(chunks).boxed()
}

fn repeated(session: &str, turn: u64, correlation_id: &str) -> Kind {
    let (session_id, correlation_id) = (session.to_owned(), correlation_id.to_owned());
    Kind::Started(Started { session_id, turn, correlation_id, repeated: true })
}

struct CancelOnDropStream {
    following: Subscription,
    running: Arc<RunningTurn>,
    ended: bool,
    /// Whether a turn that waited for a person goes on by itself.
    may_wait: bool,
}

impl Stream for CancelOnDropStream {
    type Item = Result<Chunk, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.following.poll_next_unpin(cx);
        if let Poll::Ready(None | Some(Err(_))) = next {
            // A slow reader has not given up the turn.
            self.ended = true;
        }
        next
    }
}

impl Drop for CancelOnDropStream {
    fn drop(&mut self) {
        let goes_on = self.may_wait && self.running.hub.has_waited();
        if !self.ended && !goes_on {
            self.running.cancel.cancel();
        }
    }
}
