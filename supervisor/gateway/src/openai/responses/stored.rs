//! The turn of a stored response: it is asked in a session of the agent, and found there again.

use std::collections::{BTreeMap, VecDeque};

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use talon_proto::agent::{
    AskRequest, ClientCall, ClientResult, CompletionMessage, CreateSessionRequest, DeleteSessionRequest,
    Done, GetSessionRequest, Message, Session,
};
use tonic::{Code, Status};
use utoipa::ToSchema;

use super::super::fields::agent_model;
use super::super::turn::{for_all_sessions, refused};
use super::ids::StoredId;
use super::items::{self, Item};
use super::request::{ResponseRequest, no_response, stored_echo};
use super::response::{ResponseFrame, ResponseObject};
use crate::access::require_chat;
use crate::app::App;
use crate::identity::Caller;
use crate::input::Path;
use crate::problem::{Problem, ProblemKind};
use crate::turn::{Turn, needed_chunks};

/// What the agent notes of a session of responses: people who list sessions see what it is, and a response's id deletes no other.
const METADATA: (&str, &str) = ("api", "responses");
/// Messages of a page, of those that are looked through for a response.
const PAGE: u32 = 200;

/// Begins the turn of a request, in the session of the response before or in a new one.
pub(super) async fn begin(
    app: &App,
    caller: &Caller,
    mut request: ResponseRequest,
) -> Result<(Turn, StoredId), Problem> {
    if let Some(previous) = request.previous.take() {
        let items = std::mem::take(&mut request.items);
        return after(app, caller, &request, previous, items).await.map_err(ContinueError::problem);
    }
    // Clients that send the conversation again name the parts of it that are stored.
    let last = request.items.iter().rposition(|item| item.of().is_some());
    if let Some((last, previous)) = last.and_then(|last| Some((last, request.items[last].of()?.clone()))) {
        let items = request.items[last + 1..].to_vec();
        match after(app, caller, &request, previous, items).await {
            Err(ContinueError::Elsewhere) => {}
            begun => return begun.map_err(ContinueError::problem),
        }
    }
    let items = std::mem::take(&mut request.items);
    anew(app, caller, &request, items).await
}

/// Why a turn did not begin after a stored one.
enum ContinueError {
    /// The session is gone, or has gone on.
    Elsewhere,
    /// Anything else.
    Refused(Problem),
}

impl ContinueError {
    fn problem(self) -> Problem {
        match self {
            Self::Elsewhere => no_response(),
            Self::Refused(problem) => problem,
        }
    }
}

async fn after(
    app: &App,
    caller: &Caller,
    request: &ResponseRequest,
    previous: StoredId,
    items: Vec<Item>,
) -> Result<(Turn, StoredId), ContinueError> {
    let mut results = Vec::new();
    let mut said = Vec::new();
    for item in items {
        match item {
            Item::Output { call_id, text } => results.push(ClientResult { call_id, text }),
            item => said.push(item),
        }
    }
    let messages = items::conversation(said).map_err(ContinueError::Refused)?;
    let id = previous.next().ok_or(ContinueError::Elsewhere)?;
    let ask = AskRequest {
        client_results: results,
        after_turn: Some(previous.turn),
        ..ask(request, caller, &id, messages)
    };
    match Turn::begin_stored(app, caller, ask).await {
        Ok(turn) => Ok((turn, id)),
        Err(status) if matches!(status.code(), Code::NotFound | Code::Aborted) => {
            Err(ContinueError::Elsewhere)
        }
        Err(status) => Err(ContinueError::Refused(refused(&status))),
    }
}

async fn anew(
    app: &App,
    caller: &Caller,
    request: &ResponseRequest,
    items: Vec<Item>,
) -> Result<(Turn, StoredId), Problem> {
    let messages = items::conversation(items)?;
    let metadata = [(METADATA.0.to_owned(), METADATA.1.to_owned())].into();
    let create = CreateSessionRequest {
        channel: caller.channel.to_string(),
        metadata,
        ..CreateSessionRequest::default()
    };
    let mut agent = app.backends.agent(caller);
    let session = agent.create_session(create).await.map_err(|status| refused(&status))?.into_inner().id;
    let id = StoredId::new(&session, 1);
    match Turn::begin_stored(app, caller, ask(request, caller, &id, messages)).await {
        Ok(turn) => Ok((turn, id)),
        Err(status) => {
            // Nobody would ever see it.
            let deleted = agent.delete_session(DeleteSessionRequest { session_id: session }).await;
            if let Err(error) = deleted {
                tracing::warn!(%error, "the empty session of a response stays");
            }
            Err(refused(&status))
        }
    }
}

fn ask(
    request: &ResponseRequest,
    caller: &Caller,
    id: &StoredId,
    messages: Vec<CompletionMessage>,
) -> AskRequest {
    let (system, messages): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|message| message.role == "system");
    let instructions =
        [request.instructions.clone()].into_iter().chain(system.into_iter().map(|one| one.text));
    let instructions: Vec<String> = instructions.filter(|text| !text.is_empty()).collect();
    let (told, text, media) = items::asked(messages);
    AskRequest {
        session_id: id.session.clone(),
        text,
        told,
        media,
        client_id: id.client_id(),
        busy: "refuse".to_owned(),
        model: agent_model(&request.model),
        thinking: request.thinking.clone(),
        verbosity: request.verbosity.clone(),
        schema: request.schema.clone(),
        sampling: request.sampling,
        channel: caller.channel.to_string(),
        client_tools: request.tools.clone(),
        tool_choice: request.choice.clone(),
        one_call: request.one_call,
        ends_at_limit: true,
        instructions: instructions.join("\n\n"),
        metadata: request.metadata.clone(),
        chunks: needed_chunks(request.stream),
        ..AskRequest::default()
    }
}

/// A stored response.
#[utoipa::path(get, path = "/v1/responses/{id}", tag = "openai", params(("id" = String, Path)), responses((status = OK, body = ResponseObject)))]
pub(super) async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ResponseObject>, Problem> {
    require_chat(&caller)?;
    for_all_sessions(&caller)?;
    let id = StoredId::read("resp", &id).ok_or_else(not_found)?;
    let mut agent = app.backends.agent(&caller);
    let mut reader = TurnReader::new(&id);
    let mut token = String::new();
    let model = loop {
        let request = GetSessionRequest {
            session_id: id.session.clone(),
            all: true,
            page_size: PAGE,
            page_token: token,
        };
        let page = agent.get_session(request).await.map_err(of_response)?.into_inner();
        reader.add(page.messages);
        token = page.next_page_token;
        if token.is_empty() || reader.is_over {
            break page.session.map(|session| session.active_model).unwrap_or_default();
        }
    };
    let metadata = std::mem::take(&mut reader.metadata);
    let (created, done) = reader.end().ok_or_else(not_found)?;
    let frame = ResponseFrame::new(Some(id), created, model, stored_echo(metadata));
    Ok(Json(frame.whole(&done)))
}

/// What became of a response.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DeletedResponse {
    id: String,
    /// response
    object: &'static str,
    /// Always true.
    deleted: bool,
}

/// Deletes the conversation that a response is a part of.
#[utoipa::path(delete, path = "/v1/responses/{id}", tag = "openai", params(("id" = String, Path)), responses((status = OK, body = DeletedResponse)))]
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<DeletedResponse>, Problem> {
    require_chat(&caller)?;
    for_all_sessions(&caller)?;
    let stored = StoredId::read("resp", &id).ok_or_else(not_found)?;
    let mut agent = app.backends.agent(&caller);
    let request = GetSessionRequest {
        session_id: stored.session.clone(),
        page_size: 1,
        ..GetSessionRequest::default()
    };
    let found = agent.get_session(request).await.map_err(of_response)?.into_inner();
    // An id names any session of the caller's, also one that a person talks in: that one is no response's to delete.
    if !found.session.is_some_and(|session| is_of_responses(&session)) {
        return Err(not_found());
    }
    let request = DeleteSessionRequest { session_id: stored.session };
    agent.delete_session(request).await.map_err(of_response)?;
    Ok(Json(DeletedResponse { id, object: "response", deleted: true }))
}

/// Whether a session was begun by a response.
fn is_of_responses(session: &Session) -> bool {
    session.metadata.get(METADATA.0).is_some_and(|api| api == METADATA.1)
}

/// What a refusal of the agent about a response's session becomes.
fn of_response(status: Status) -> Problem {
    match status.code() {
        Code::NotFound => not_found(),
        _ => status.into(),
    }
}

fn not_found() -> Problem {
    Problem::new(ProblemKind::NotFound, "there is no such response: it was deleted, or is not yours")
}

/// Finds a turn among the messages of its session.
struct TurnReader<'i> {
    id: &'i StoredId,
    asked: Option<u64>,
    metadata: BTreeMap<String, String>,
    is_over: bool,
    said: VecDeque<Message>,
}

impl<'i> TurnReader<'i> {
    fn new(id: &'i StoredId) -> Self {
        Self { id, asked: None, metadata: BTreeMap::new(), is_over: false, said: VecDeque::new() }
    }

    fn add(&mut self, messages: Vec<Message>) {
        for message in messages {
            if self.id.is_asked_by(&message) {
                self.asked = Some(message.unix_ms);
                self.metadata = message.metadata;
            } else if self.asked.is_some() && message.role == "user" && !message.client_id.is_empty() {
                self.is_over = true;
            } else if self.asked.is_some() && !self.is_over {
                self.said.push_back(message);
            }
        }
    }

    /// When it was asked, in seconds, and its last answer.
    fn end(mut self) -> Option<(u64, Done)> {
        let asked = self.asked?;
        let answer = loop {
            let last = self.said.pop_back()?;
            if last.role == "assistant" {
                break last;
            }
        };
        let is_client = |id: &str| id.starts_with("call_t_") || id.starts_with("call_tk_");
        let calls = answer.tool_calls.into_iter().filter(|call| is_client(&call.call_id));
        let client_calls = calls
            .map(|call| ClientCall { id: call.call_id, name: call.tool, arguments: call.arguments })
            .collect();
        Some((asked / 1000, Done { text: answer.content, client_calls, ..Done::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: GW-172
    #[test]
    fn a_session_of_a_person_is_no_responses() {
        let of = |key: &str, value: &str| Session {
            metadata: [(key.to_owned(), value.to_owned())].into(),
            ..Session::default()
        };
        assert!(is_of_responses(&of("api", "responses")));
        assert!(!is_of_responses(&of("api", "other")) && !is_of_responses(&Session::default()));
        assert_eq!(of_response(Status::not_found("there is no session")), not_found());
    }

    // Promises: GW-172
    #[test]
    fn a_turn_is_found_by_the_name_of_its_message() {
        let id = StoredId::new("01ARZ3NDEKTSV4RRFFQ69G5FAV", 2);
        let message = |role: &str, content: &str, client_id: &str| Message {
            role: role.to_owned(),
            content: content.to_owned(),
            client_id: client_id.to_owned(),
            unix_ms: 5000,
            ..Message::default()
        };
        let mut reader = TurnReader::new(&id);
        reader.add(vec![message("user", "1?", "response-1-a"), message("assistant", "One.", "")]);
        reader.add(vec![message("user", "2?", &id.client_id()), message("assistant", "I look.", "")]);
        reader.add(vec![message("tool", "x", ""), message("assistant", "Two.", "")]);
        reader.add(vec![message("user", "3?", "response-3-c"), message("assistant", "Three.", "")]);
        let (created, done) = reader.end().expect("it is there");
        assert_eq!((created, done.text.as_str()), (5, "Two."));
        let other = StoredId { turn: 9, ..id };
        assert!(TurnReader::new(&other).end().is_none());
    }
}
