//! One turn, followed to its end, also across a restart of the agent.

use talon_proto::agent::{AskRequest, AttachRequest, Chunk, chunk};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Code, Status, Streaming};

use super::grpc::agent_client;
use crate::call::with_trace;
use crate::client::Client;
use crate::request_fate::RequestFate;
use crate::retry_window::RetryWindow;

/// An event of a turn.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly all events are chunks, one at a time")]
pub enum TurnEvent {
    /// The next chunk.
    Chunk(Chunk),
    /// The connection was made again, and the turn continues: chunks in between may be lost. A text that was
    /// received in part may be repeated from its beginning.
    Reconnected,
}

/// Why a turn could not be followed to its end. Its effects stay in its session.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The agent answered with this error.
    #[error("{}", .0.message())]
    Refused(Box<Status>),
    /// The connection broke before the first chunk, so it is unknown whether the turn started.
    #[error("{}; whether the turn was begun is not known: look with `talon session list` before you ask again", .0.message())]
    Unknown(Box<Status>),
    /// The agent went away, and did not come back.
    #[error("{}", .status.message())]
    Lost {
        /// The turn's session, if known: then it can be followed again.
        session_id: Option<String>,
        /// The last error.
        status: Box<Status>,
    },
    /// The turn ended while there was no connection.
    #[error("the turn ended while the connection was away: see `talon session show {session_id}`")]
    Missed {
        /// The turn's session.
        session_id: String,
    },
}

/// A turn of a session. If the agent restarts meanwhile, this reconnects to the turn. Dropping this closes
/// the stream, which cancels the turn unless it waits, or has waited, for an approval.
#[derive(Debug)]
pub struct Turn {
    client: Client,
    /// `None` if it attaches to a running turn.
    request: Option<AskRequest>,
    session_id: Option<String>,
    stream: Option<Streaming<Chunk>>,
    trace_parent: Option<MetadataValue<Ascii>>,
    retry_window: RetryWindow,
    /// A chunk was received: from here on it can only attach.
    begun: bool,
    finished: bool,
}

impl Turn {
    pub(super) fn for_request(client: Client, request: AskRequest) -> Self {
        Self { request: Some(request), ..Self::new(client, None) }
    }

    pub(super) fn of_session(client: Client, session_id: String) -> Self {
        Self::new(client, Some(session_id))
    }

    fn new(client: Client, session_id: Option<String>) -> Self {
        let retry_window = RetryWindow::new(None);
        Self {
            client,
            request: None,
            session_id,
            stream: None,
            trace_parent: None,
            retry_window,
            begun: false,
            finished: false,
        }
    }

    /// The turn as a part of a trace: `trace_parent` is the header `traceparent` of W3C Trace Context. One that is no
    /// header's value counts as none.
    #[must_use]
    pub fn traced(self, trace_parent: &str) -> Self {
        Self { trace_parent: trace_parent.parse().ok(), ..self }
    }

    /// The turn's session, once known.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// The next event. `None`: it has ended, after a `done` or an `error`.
    ///
    /// Cancel safe once the first chunk was received.
    ///
    /// # Errors
    /// [`TurnError`]; there are no events after it.
    pub async fn next(&mut self) -> Result<Option<TurnEvent>, TurnError> {
        loop {
            if self.finished {
                return Ok(None);
            }
            let lost = match &mut self.stream {
                Some(stream) => match stream.message().await {
                    Ok(Some(chunk)) => return Ok(Some(self.handle_chunk(chunk))),
                    Ok(None) => Status::unavailable("the agent ended the turn's stream without its end"),
                    Err(status) => self.transport_error(status)?,
                },
                None => match self.open().await {
                    Ok(stream) => {
                        self.stream = Some(stream);
                        if self.begun {
                            return Ok(Some(TurnEvent::Reconnected));
                        }
                        continue;
                    }
                    Err(status) => self.transient_open_error(status)?,
                },
            };
            self.stream = None;
            if !self.begun
                && self.request.is_some()
                && RequestFate::from_status(&lost) != RequestFate::NotStarted
            {
                return Err(self.finish(TurnError::Unknown(Box::new(lost))));
            }
            if !self.client.wait_for_supervisor(&lost, &mut self.retry_window).await {
                let session_id = self.session_id.clone();
                return Err(self.finish(TurnError::Lost { session_id, status: Box::new(lost) }));
            }
        }
    }

    async fn open(&self) -> Result<Streaming<Chunk>, Status> {
        let mut client = agent_client(&self.client);
        let response = match (&self.request, &self.session_id) {
            (Some(request), _) if !self.begun => {
                client.ask(with_trace(request.clone(), self.trace_parent.as_ref())).await?
            }
            (_, session_id) => {
                let session_id = session_id.clone().unwrap_or_default();
                client.attach(AttachRequest { session_id }).await?
            }
        };
        Ok(response.into_inner())
    }

    fn handle_chunk(&mut self, chunk: Chunk) -> TurnEvent {
        match &chunk.kind {
            Some(chunk::Kind::Started(started)) => self.session_id = Some(started.session_id.clone()),
            Some(chunk::Kind::Done(_) | chunk::Kind::Error(_)) => self.finished = true,
            _ => {}
        }
        self.begun = true;
        self.retry_window = RetryWindow::new(None);
        TurnEvent::Chunk(chunk)
    }

    /// Why no stream was opened, if the error is transient.
    fn transient_open_error(&mut self, status: Status) -> Result<Status, TurnError> {
        match (&self.session_id, status.code()) {
            (Some(session_id), Code::NotFound) if self.begun => {
                let session_id = session_id.clone();
                Err(self.finish(TurnError::Missed { session_id }))
            }
            _ => self.transport_error(status),
        }
    }

    /// Why the connection broke. An error that the agent answered is returned as such.
    fn transport_error(&mut self, status: Status) -> Result<Status, TurnError> {
        match RequestFate::from_status(&status) {
            RequestFate::Answered => Err(self.finish(TurnError::Refused(Box::new(status)))),
            RequestFate::NotStarted | RequestFate::Unknown => Ok(status),
        }
    }

    fn finish(&mut self, error: TurnError) -> TurnError {
        self.finished = true;
        error
    }
}
