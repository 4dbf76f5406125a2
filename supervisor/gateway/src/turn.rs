//! A turn as a sequence of events, and what came of it.

use futures_util::{Stream, StreamExt as _, stream};
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{AskRequest, Chunk, CompleteRequest, Done, Error, Started};
use tonic::{Status, Streaming};

use crate::access::of_session;
use crate::app::App;
use crate::clock::unix_ms;
use crate::events::{Envelope, chunk};
use crate::identity::Caller;
use crate::problem::{Problem, ProblemKind};

/// Which chunks of a turn its answer needs: pieces of text if it is streamed as text, and otherwise none.
pub(crate) fn needed_chunks(streams: bool) -> String {
    if streams { "text" } else { "none" }.to_owned()
}

/// A turn that has begun.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Which session and turn it is.
    pub started: Started,
    chunks: Streaming<Chunk>,
}

/// How a turn ended.
#[derive(Debug)]
pub(crate) enum TurnEnd {
    /// With an answer.
    Done(Done),
    /// Without one.
    Failed(Error),
}

impl Turn {
    /// Asks for this caller, and waits for the beginning.
    ///
    /// # Errors
    /// Why no turn began.
    pub(crate) async fn begin(app: &App, caller: &Caller, request: AskRequest) -> Result<Self, Problem> {
        Self::begin_stored(app, caller, request).await.map_err(of_session)
    }

    /// The same, with what the agent says where none begins.
    ///
    /// # Errors
    /// Why no turn began.
    pub(crate) async fn begin_stored(
        app: &App,
        caller: &Caller,
        request: AskRequest,
    ) -> Result<Self, Status> {
        let mut agent = match request.can_answer {
            true => app.backends.agent_that_asks_back(caller),
            false => app.backends.agent(caller),
        };
        let mut chunks = agent.ask(request).await?.into_inner();
        match chunks.message().await? {
            Some(Chunk { kind: Some(Kind::Started(started)) }) => Ok(Self { started, chunks }),
            _ => Err(Status::unavailable("the agent began no turn")),
        }
    }

    /// Begins a turn of no session.
    ///
    /// # Errors
    /// Why none began.
    pub(crate) async fn complete(
        app: &App,
        caller: &Caller,
        request: CompleteRequest,
    ) -> Result<Self, Status> {
        let mut chunks = app.backends.agent(caller).complete(request).await?.into_inner();
        match chunks.message().await? {
            Some(Chunk { kind: Some(Kind::Started(started)) }) => Ok(Self { started, chunks }),
            _ => Err(Status::unavailable("the agent began no turn")),
        }
    }

    /// The next piece; `None` after the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Kind>, Status> {
        while let Some(chunk) = self.chunks.message().await? {
            // A kind of a later version says nothing to this one.
            if let Some(kind) = chunk.kind {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// The agent was lost.
    pub(crate) async fn end(&mut self) -> Result<TurnEnd, Problem> {
        loop {
            match self.next().await? {
                Some(Kind::Done(done)) => return Ok(TurnEnd::Done(done)),
                Some(Kind::Error(error)) => return Ok(TurnEnd::Failed(error)),
                Some(_) => {}
                None => {
                    let detail = "the agent ended in the middle of the turn: read the session, and ask again";
                    return Err(Problem::new(ProblemKind::Unavailable, detail));
                }
            }
        }
    }

    /// Its events, as they come. Letting go of them cancels the turn.
    pub(crate) fn events(self) -> impl Stream<Item = Result<Envelope, Status>> + Send {
        let session = self.started.session_id.clone();
        stream::try_unfold(self, |mut turn| async move { Ok(turn.next().await?.map(|kind| (kind, turn))) })
            .flat_map(move |piece: Result<Kind, Status>| match piece {
                Ok(kind) => stream::iter(enveloped(&session, kind)).map(Ok).left_stream(),
                Err(status) => stream::iter([Err(status)]).right_stream(),
            })
    }
}

/// The events of a piece, as of now.
pub(crate) fn enveloped(session: &str, kind: Kind) -> Vec<Envelope> {
    let now = unix_ms();
    chunk::events(session, kind).into_iter().map(|event| Envelope::now(event, now)).collect()
}

/// What a turn without an answer becomes.
pub(crate) fn failed(error: &Error) -> Problem {
    let kind = match error.reason.as_str() {
        "cancelled" | "interrupted" => ProblemKind::Conflict,
        "no_provider" | "exhausted" | "expired" | "dropped" => ProblemKind::Unavailable,
        "cost" | "over_budget" => ProblemKind::TooManyRequests,
        "no_vision" | "request_refused" | "context_full" | "answer_refused" => ProblemKind::Unprocessable,
        "internal" | "not_stored" => ProblemKind::Internal,
        _ => ProblemKind::BadGateway,
    };
    Problem::new(kind, format!("{} ({})", error.message, error.reason))
}
