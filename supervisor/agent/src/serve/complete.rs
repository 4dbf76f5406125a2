//! `Complete`: turns of no session. Clients' own tools, also in sessions.

use std::fmt::Write as _;
use std::sync::Arc;

use talon_proto::agent::{ClientResult, ClientTool, CompleteRequest, CompletionMessage, ToolChoice};
use talon_trace_context::TraceParent;
use tonic::Status;

use super::ask::{channel_of, parse_schema};
use super::client::Client;
use super::limits::{MAX_PLAIN_REQUEST_BYTES, MAX_STOP_BYTES, MAX_STOPS};
use super::sampling::known_sampling;
use super::service::Service;
use super::session_change::{known_patterns, known_verbosity};
use super::turn_stream::{self, Chunks};
use crate::agent::{TurnRequest, known_model, known_thinking};
use crate::driver::ClientSide;
use crate::hooks::Stage;
use crate::prompt::Verbosity;
use crate::stateless::{
    ConversationError, ConversationReader, PassingImages, client_result, known_choice, known_tools,
    told_conversation,
};
use crate::turns::ChunkFilter;

impl Service {
    pub(super) async fn complete(
        &self,
        client: &Client,
        request: CompleteRequest,
        trace: Option<TraceParent>,
    ) -> Result<Chunks, Status> {
        let CompleteRequest {
            messages,
            model,
            thinking,
            schema,
            sampling,
            verbosity,
            tools,
            no_tools,
            channel,
            local_only,
            client_tools,
            tool_choice,
            one_call,
            stop,
            seed,
            chunks,
        } = request;
        let filter = ChunkFilter::parse(&chunks)?;
        if stop.len() > MAX_STOPS || stop.iter().any(|text| text.is_empty() || text.len() > MAX_STOP_BYTES) {
            let why = format!("it is at most {MAX_STOPS} texts of 1 to {MAX_STOP_BYTES} bytes");
            return Err(ConversationError::Invalid { field: "stop".to_owned(), why }.into());
        }
        let texts = messages.iter().map(|message| {
            let calls = message.calls.iter().map(|call| call.name.len() + call.arguments.len());
            message.text.len() + calls.sum::<usize>()
        });
        if texts.sum::<usize>() + schema.len() > MAX_PLAIN_REQUEST_BYTES {
            return Err(Status::out_of_range(format!(
                "without its images the conversation has more than {MAX_PLAIN_REQUEST_BYTES} bytes: leave out its oldest messages"
            )));
        }
        let setup = self.agent.setup();
        let mut side = self.client_side(client_tools, tool_choice, one_call)?.unwrap_or_default();
        let media = setup.settings.agent.media;
        let reader = ConversationReader {
            sender: &client.sender,
            kept: &self.agent.turn_cache,
            sanitizer: &setup.environment.sanitizer,
            media: &media,
            is_hooked: setup.environment.hooks.has(Stage::Request, ""),
        };
        let conversation = reader.read(messages)?;
        side.past = conversation.past;
        side.exchanges = conversation.exchanges;
        (side.is_stateless, side.ends_at_limit) = (true, true);
        (side.stop, side.seed) = (stop, seed);
        let request = TurnRequest {
            text: conversation.request,
            images: conversation.images.iter().map(|(image, _)| image.clone()).collect(),
            model: known_model(&setup, &model).map_err(|status| of_field("model", &status))?,
            thinking: known_thinking(&thinking)?,
            sampling: known_sampling(sampling)?,
            verbosity: known_verbosity(verbosity)?.as_deref().and_then(Verbosity::parse),
            schema: parse_schema(&schema).map_err(|status| of_field("schema", &status))?.map(Arc::new),
            tools: known_patterns(tools)?,
            no_tools,
            local_only,
            trace,
            client: Some(side),
            instructions: conversation.instructions,
            ..TurnRequest::default()
        };
        let images = PassingImages::new(media, conversation.all_images);
        let channel = channel_of(client, &channel)?;
        let (running, following) =
            self.agent.complete(&client.sender, channel, conversation.turn, request, images).await?;
        Ok(turn_stream::of_no_session(following.filtered(filter), running))
    }

    /// The tools of a client, if it brings some.
    pub(super) fn client_side(
        &self,
        tools: Vec<ClientTool>,
        choice: Option<ToolChoice>,
        one_call: bool,
    ) -> Result<Option<Box<ClientSide>>, Status> {
        if tools.is_empty() && choice.is_none() {
            return Ok(None);
        }
        let bytes = tools.iter().map(|tool| tool.name.len() + tool.description.len() + tool.parameters.len());
        if bytes.sum::<usize>() > MAX_PLAIN_REQUEST_BYTES {
            let why = format!("they have more than {MAX_PLAIN_REQUEST_BYTES} bytes together: offer fewer");
            return Err(ConversationError::Invalid { field: "tools".to_owned(), why }.into());
        }
        let mut tools = known_tools(tools)?;
        let choice = known_choice(choice, &mut tools)?;
        if !tools.is_empty() && self.agent.setup().environment.hooks.hold_text("") {
            return Err(ConversationError::Hooked.into());
        }
        Ok(Some(Box::new(ClientSide { tools, choice, one_call, ..ClientSide::default() })))
    }

    /// The message of a turn with what was said before it, as its client tells it.
    pub(super) fn with_conversation(
        &self,
        text: String,
        told: Vec<CompletionMessage>,
    ) -> Result<String, Status> {
        if told.is_empty() {
            return Ok(text);
        }
        let texts = told.iter().map(|message| message.text.len());
        if texts.sum::<usize>() > MAX_PLAIN_REQUEST_BYTES {
            return Err(Status::out_of_range(format!(
                "the conversation has more than {MAX_PLAIN_REQUEST_BYTES} bytes: leave out its oldest messages"
            )));
        }
        let sanitizer = Arc::clone(&self.agent.setup().environment.sanitizer);
        Ok(told_conversation(told, &text, &sanitizer)?)
    }

    /// The message of a turn that brings the results of calls which its client made: they are data in it. In a session the calls are
    /// those with which its last turn ended.
    pub(super) async fn with_client_results(
        &self,
        client: &Client,
        session_id: &str,
        text: String,
        results: Vec<ClientResult>,
    ) -> Result<String, Status> {
        if results.is_empty() {
            return Ok(text);
        }
        let session = self.session(client, session_id).await?;
        let handed = self.agent.handed_over(&session).await?;
        let sanitizer = Arc::clone(&self.agent.setup().environment.sanitizer);
        let mut said = String::from("The results of the calls that the client made:");
        for result in &results {
            if !handed.contains(&result.call_id) {
                let why = "the session's last turn ended with no such call";
                return Err(
                    ConversationError::Invalid { field: "call_id".to_owned(), why: why.to_owned() }.into()
                );
            }
            // Writing to a String does not fail.
            let _ = write!(said, "\n\n{}", client_result(&result.call_id, &result.text, &sanitizer));
        }
        if let Some(missing) = handed.iter().find(|id| results.iter().all(|result| result.call_id != **id)) {
            let why = format!("the call {missing} has no result: send one for each call");
            return Err(ConversationError::Invalid { field: "call_id".to_owned(), why }.into());
        }
        if !text.trim().is_empty() {
            let _ = write!(said, "\n\n{text}");
        }
        Ok(said)
    }
}

fn of_field(field: &str, status: &Status) -> Status {
    ConversationError::Invalid { field: field.to_owned(), why: status.message().to_owned() }.into()
}
