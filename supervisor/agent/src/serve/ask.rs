//! `Ask`, `Attach`, `Cancel`, `GetLoop`: turns.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use talon_agent_settings::{BusyMode, linked_sender};
use talon_guard::Raw;
use talon_listen::delegation::is_subject;
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{
    AskRequest, AttachRequest, CancelRequest, CancelResponse, GetLoopRequest, LoopState,
};
use talon_store::{Error, NewSession, Session};
use talon_trace_context::TraceParent;
use tokio::time::timeout;
use tonic::Status;

use super::client::{Client, Origin};
use super::limits::{
    MAX_CHANNEL_BYTES, MAX_CLIENT_ID_BYTES, MAX_MESSAGE_METADATA, MAX_METADATA_KEY_CHARS,
    MAX_METADATA_VALUE_CHARS, MAX_PLAIN_REQUEST_BYTES, MAX_TEXT_BYTES,
};
use super::sampling::known_sampling;
use super::service::Service;
use super::session_change::{known_patterns, known_verbosity};
use super::turn_stream::Chunks;
use crate::agent::{CANCEL_WAIT, CREATED, TurnRequest, known_model, known_thinking};
use crate::answer::Schema;
use crate::driver::MessageOrigin;
use crate::error_status::{no_session, store_error_status};
use crate::media::{AcceptedMedia, accept};
use crate::prompt::Verbosity;
use crate::turns::ChunkFilter;

impl Service {
    pub(super) async fn ask(
        &self,
        client: &Client,
        request: AskRequest,
        trace: Option<TraceParent>,
    ) -> Result<Chunks, Status> {
        let AskRequest {
            session_id,
            text,
            model,
            thinking,
            schema,
            tools,
            no_tools,
            channel,
            local_only,
            can_answer,
            sampling,
            media,
            plan,
            verbosity,
            client_id,
            detached,
            main_session,
            sender_name,
            member,
            busy,
            client_tools,
            tool_choice,
            one_call,
            client_results,
            instructions,
            after_turn,
            ends_at_limit,
            metadata,
            told,
            chunks,
        } = request;
        let filter = ChunkFilter::parse(&chunks)?;
        let text = self.with_conversation(text, told)?;
        let text = self.with_client_results(client, &session_id, text, client_results).await?;
        if text.trim().is_empty() {
            return Err(Status::invalid_argument("the question is empty: say what is wanted"));
        }
        if text.len() + schema.len() + instructions.len() > MAX_PLAIN_REQUEST_BYTES {
            return Err(Status::out_of_range(format!(
                "without its images and files the question has more than {MAX_PLAIN_REQUEST_BYTES} bytes: put what is long into a file that a \
                 tool can read"
            )));
        }
        if text.len() > MAX_TEXT_BYTES {
            return Err(Status::invalid_argument(format!(
                "the question has {} bytes, and may have {MAX_TEXT_BYTES}: put what is long into a file that a tool can read",
                text.len()
            )));
        }
        if plan && no_tools {
            return Err(Status::invalid_argument(
                "a plan is written by a call, and this turn is to have no tools: leave one of both out",
            ));
        }
        let mut side = self.client_side(client_tools, tool_choice, one_call)?;
        if ends_at_limit {
            side.get_or_insert_default().ends_at_limit = true;
        }
        let client_id = known_client_id(client_id, &session_id, main_session)?;
        let setup = self.agent.setup();
        let has_queue = main_session || !client_id.is_empty();
        let usual = if has_queue { setup.settings.agent.sessions.busy } else { BusyMode::Refuse };
        let busy = known_busy(&busy, usual)?;
        let AcceptedMedia { images, files } = accept(media, &setup.settings.agent.media)
            .map_err(|error| Status::invalid_argument(talon_child::truncate(error.to_string())))?;
        let mut wish = TurnRequest {
            text,
            origin: MessageOrigin {
                client_id,
                sender_name: known_sender_name(&sender_name)?,
                member: known_member(client, &setup.settings.agent.identities, &member)?,
                metadata: known_metadata(metadata)?,
                ..MessageOrigin::default()
            },
            detached,
            images: images.iter().map(|(image, _)| image.clone()).collect(),
            attachments: files.iter().map(|(file, _)| file.clone()).collect(),
            model: known_model(&setup, &model)?,
            thinking: known_thinking(&thinking)?,
            sampling: known_sampling(sampling)?,
            verbosity: known_verbosity(verbosity)?.as_deref().and_then(Verbosity::parse),
            schema: parse_schema(&schema)?.map(Arc::new),
            tools: known_patterns(tools)?,
            no_tools,
            local_only,
            can_answer: can_answer && client.origin == Origin::Person,
            plans_first: plan,
            trace,
            turn: after_turn.map(|last| last.saturating_add(1)),
            micro_usd: None,
            client: side,
            instructions,
        };
        let session = if !session_id.is_empty() {
            self.session(client, &session_id).await?
        } else if main_session {
            self.agent.main_session(&client.sender, &channel_of(client, &channel)?).await?
        } else {
            self.new_session(client, &channel).await?
        };
        if !channel.is_empty() && channel != session.channel {
            wish.origin.channel = channel_of(client, &channel)?;
        }
        let id = session.id.to_string();
        let media = self.agent.media.add_request(&id, &images, &files).await;
        let media = media.map_err(|error| media_status(&error))?;
        let has_media = !images.is_empty() || !files.is_empty();
        drop((images, files));
        let failed = |error: Error| store_error_status(&error);
        if has_media && self.agent.sessions.get(session.id).await.map_err(failed)?.is_none() {
            // It was deleted in this moment, and its media before these.
            self.agent.media.forget(&id).await.map_err(failed)?;
            return Err(no_session(&id));
        }
        let begun = self.begin(&session, wish, busy, filter).await;
        let (settled, left) = if begun.is_ok() {
            (media.keep().await, "the oldest images and files of a session, which has too much, do not go")
        } else {
            (media.take_back().await, "images or files of a message that was refused stay with its session")
        };
        if let Err(error) = settled {
            let error = talon_error_chain::error_chain(&error);
            tracing::warn!(session = id, error, "{left}");
        }
        begun
    }

    /// Creates a session for a client's first question.
    pub(super) async fn new_session(&self, client: &Client, channel: &str) -> Result<Session, Status> {
        let most = self.agent.setup().settings.agent.sessions.per_sender;
        let _place = self.session_counts.add(&*self.agent.sessions, &client.sender, most).await?;
        let session = NewSession {
            sender: client.sender.to_string(),
            channel: channel_of(client, channel)?,
            metadata: [(CREATED.to_owned(), "true".to_owned())].into(),
            ..NewSession::default()
        };
        self.agent.sessions.create(session).await.map_err(|error| store_error_status(&error))
    }

    pub(super) async fn attach(&self, client: &Client, request: AttachRequest) -> Result<Chunks, Status> {
        let session = self.session(client, &request.session_id).await?;
        let (running, _) = self.agent.turn_of(&session).await?.ok_or_else(|| no_running_turn(&session))?;
        Ok(running.hub.follow(|at| vec![Kind::Loop(at.clone())])?.boxed())
    }

    pub(super) async fn cancel(
        &self,
        client: &Client,
        request: CancelRequest,
    ) -> Result<CancelResponse, Status> {
        let session = self.session(client, &request.session_id).await?;
        // An interrupted turn is resumed just long enough to end it.
        let Some((running, _)) = self.agent.turn_of(&session).await? else {
            return Ok(CancelResponse { cancelled: false });
        };
        running.cancel.cancel();
        // A client that receives the end may ask again at once.
        let _over = timeout(CANCEL_WAIT, running.hub.wait_ended()).await;
        Ok(CancelResponse { cancelled: true })
    }

    pub(super) async fn get_loop(
        &self,
        client: &Client,
        request: GetLoopRequest,
    ) -> Result<LoopState, Status> {
        let session = self.session(client, &request.session_id).await?;
        let running = self.agent.turns.get(session.id).ok_or_else(|| no_running_turn(&session))?;
        Ok(running.hub.loop_state())
    }
}

/// The status for images and files that were not stored.
fn media_status(error: &Error) -> Status {
    match error {
        Error::Quota { .. } => Status::resource_exhausted(
            "the images and files of all sessions are as many as agent.media.total_bytes allows: delete sessions (`talon session delete`), \
             raise it, or lower agent.media.keep_days",
        ),
        error => store_error_status(error),
    }
}

fn no_running_turn(session: &Session) -> Status {
    Status::not_found(format!(
        "session {id} is in no turn: ask something (`talon chat --session {id}`)",
        id = session.id
    ))
}

/// The channel of clients at a terminal.
const CLI: &str = "cli";

/// The channel of a request. `agent.allow.channels` restricts what may be called on it, so restricted clients
/// cannot choose it.
pub(super) fn channel_of(client: &Client, channel: &str) -> Result<String, Status> {
    if let Some(own) = &client.channel {
        // Where it comes from is known already.
        return if channel.is_empty() || *channel == **own {
            Ok(own.to_string())
        } else {
            Err(Status::permission_denied(format!(
                "this request comes from the channel {own}: leave the channel out"
            )))
        };
    }
    let channel = known_channel(channel)?;
    if channel == CLI || client.is_operator() {
        return Ok(channel);
    }
    Err(Status::permission_denied(format!(
        "to talk on the channel {channel} needs the role operate; {sender} has the role call, and talks on {CLI}: leave the channel \
         out, or ask the operator for an entry under host.peers",
        sender = client.sender
    )))
}

/// Checks the name of a channel.
fn known_channel(channel: &str) -> Result<String, Status> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    match channel {
        "" => Ok(CLI.to_owned()),
        channel if channel.len() <= MAX_CHANNEL_BYTES && channel.chars().all(fits) => Ok(channel.to_owned()),
        _ => Err(Status::invalid_argument(format!(
            "a channel is a word of at most {MAX_CHANNEL_BYTES} letters, digits, '-', '_', '.' or ':'"
        ))),
    }
}

/// Checks the name that a client gives its message.
fn known_client_id(client_id: String, session_id: &str, main_session: bool) -> Result<String, Status> {
    if client_id.len() > MAX_CLIENT_ID_BYTES || client_id.chars().any(char::is_control) {
        return Err(Status::invalid_argument(format!(
            "client_id is at most {MAX_CLIENT_ID_BYTES} bytes without control characters: an id such as a nanoid will do"
        )));
    }
    if !client_id.is_empty() && session_id.is_empty() && !main_session {
        return Err(Status::invalid_argument(
            "client_id names a message within its session: set session_id, or main_session",
        ));
    }
    Ok(client_id)
}

/// Whose message it is in a group. Only the gateway speaks for several people.
fn known_member(
    client: &Client,
    identities: &BTreeMap<String, Vec<String>>,
    member: &str,
) -> Result<String, Status> {
    if member.is_empty() {
        return Ok(String::new());
    }
    if !client.delegates {
        return Err(Status::permission_denied(
            "member is for the gateway, which speaks for groups: leave it out",
        ));
    }
    if !is_subject(member) {
        return Err(Status::invalid_argument("member is gw:CHANNEL/ID"));
    }
    Ok(linked_sender(identities, member).to_owned())
}

/// What a client notes beside its message.
fn known_metadata(metadata: BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Status> {
    let fits = |key: &String, value: &String| {
        key.chars().count() <= MAX_METADATA_KEY_CHARS && value.chars().count() <= MAX_METADATA_VALUE_CHARS
    };
    if metadata.len() > MAX_MESSAGE_METADATA || !metadata.iter().all(|(key, value)| fits(key, value)) {
        return Err(Status::invalid_argument(format!(
            "metadata of a message has at most {MAX_MESSAGE_METADATA} entries, keys of {MAX_METADATA_KEY_CHARS} characters and values of \
             {MAX_METADATA_VALUE_CHARS}: keep the rest elsewhere"
        )));
    }
    Ok(metadata)
}

/// Who speaks, as one line that is control syntax for no model.
fn known_sender_name(name: &str) -> Result<String, Status> {
    if name.len() > MAX_CLIENT_ID_BYTES {
        return Err(Status::invalid_argument(format!(
            "sender_name has {} bytes, and may have {MAX_CLIENT_ID_BYTES}: shorten it",
            name.len()
        )));
    }
    Ok(Raw::from(name).line().as_str().trim().to_owned())
}

fn known_busy(word: &str, usual: BusyMode) -> Result<BusyMode, Status> {
    match word {
        "" => Ok(usual),
        "refuse" => Ok(BusyMode::Refuse),
        "queue" => Ok(BusyMode::Queue),
        "interrupt" => Ok(BusyMode::Interrupt),
        "merge" => Ok(BusyMode::Merge),
        _ => Err(Status::invalid_argument("busy is refuse, queue, interrupt or merge")),
    }
}

/// Compiles the schema that the answer has to fit.
pub(super) fn parse_schema(schema: &str) -> Result<Option<Schema>, Status> {
    if schema.is_empty() {
        return Ok(None);
    }
    let json = serde_json::from_str(schema)
        .map_err(|error| Status::invalid_argument(format!("the schema is no JSON: {error}")))?;
    let schema = Schema::new(json)
        .map_err(|error| Status::invalid_argument(talon_child::truncate(error.to_string())))?;
    Ok(Some(schema))
}
