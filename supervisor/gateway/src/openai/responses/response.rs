//! The response object.

use serde::Serialize;
use serde_json::Value;
use talon_proto::agent::{ClientCall, Done, Usage};
use utoipa::ToSchema;

use super::super::completion::Null;
use super::ids::StoredId;
use super::request::EchoedFields;
use crate::problem::Problem;
use crate::random;

/// A response.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct ResponseObject {
    id: String,
    /// response
    object: &'static str,
    /// In seconds since 1970.
    created_at: u64,
    status: ResponseStatus,
    /// Always false.
    background: bool,
    /// Of a failed one.
    #[schema(required = true)]
    error: Option<ResponseFailure>,
    /// Of an incomplete one.
    #[schema(required = true)]
    incomplete_details: Option<IncompleteDetails>,
    /// As the request named it.
    model: String,
    /// The answer, and calls that the client makes.
    output: Vec<OutputItem>,
    /// default
    service_tier: &'static str,
    /// Whether it can be read again and gone on from.
    store: bool,
    /// disabled
    truncation: &'static str,
    /// Null before its end.
    #[schema(required = true)]
    usage: Option<ResponseUsage>,
    /// Always null.
    #[schema(value_type = Option<Object>, required = true)]
    user: Null,
    /// What it repeats of its request.
    #[serde(flatten)]
    echo: EchoedFields,
}

impl ResponseObject {
    /// The same, failed by this problem.
    pub(super) fn failed(self, problem: &Problem) -> Self {
        let error = ResponseFailure { code: "server_error", message: problem.detail().to_owned() };
        Self { status: ResponseStatus::Failed, error: Some(error), ..self }
    }
}

/// The state of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResponseStatus {
    InProgress,
    Completed,
    Incomplete,
    Failed,
}

impl ResponseStatus {
    /// Of a response that has ended with an answer.
    pub(super) fn of(done: &Done) -> Self {
        if done.finish == "length" { Self::Incomplete } else { Self::Completed }
    }
}

#[derive(Debug, Clone, Serialize, ToSchema)]
struct ResponseFailure {
    /// server_error
    code: &'static str,
    message: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
struct IncompleteDetails {
    /// max_output_tokens
    reason: &'static str,
}

/// A part of an answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputItem {
    /// What the assistant says.
    Message {
        id: String,
        status: ItemStatus,
        /// assistant
        role: &'static str,
        /// One, or none before its text begins.
        content: Vec<OutputPart>,
    },
    /// A call that the client makes.
    FunctionCall {
        id: String,
        status: ItemStatus,
        /// What its result names.
        call_id: String,
        name: String,
        /// JSON.
        arguments: String,
    },
}

impl OutputItem {
    /// A message of the assistant; without a text it has no part yet.
    pub(super) fn message(id: &str, status: ItemStatus, text: Option<&str>) -> Self {
        let content = text.map(OutputPart::text).into_iter().collect();
        Self::Message { id: id.to_owned(), status, role: "assistant", content }
    }

    /// A call that the client makes, with its arguments so far.
    pub(super) fn call(id: &str, status: ItemStatus, call: &ClientCall, arguments: &str) -> Self {
        Self::FunctionCall {
            id: id.to_owned(),
            status,
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: arguments.to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ItemStatus {
    InProgress,
    Completed,
}

/// A text of a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputPart {
    OutputText {
        text: String,
        /// Always empty.
        annotations: Vec<Value>,
        /// Always empty.
        logprobs: Vec<Value>,
    },
}

impl OutputPart {
    pub(super) fn text(text: &str) -> Self {
        Self::OutputText { text: text.to_owned(), annotations: Vec::new(), logprobs: Vec::new() }
    }
}

/// What a response used.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct ResponseUsage {
    input_tokens: u64,
    input_tokens_details: InputTokenDetails,
    output_tokens: u64,
    output_tokens_details: OutputTokenDetails,
    total_tokens: u64,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct InputTokenDetails {
    cached_tokens: u64,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct OutputTokenDetails {
    reasoning_tokens: u64,
}

impl From<Option<&Usage>> for ResponseUsage {
    fn from(usage: Option<&Usage>) -> Self {
        let usage = usage.copied().unwrap_or_default();
        Self {
            input_tokens: usage.input_tokens,
            input_tokens_details: InputTokenDetails { cached_tokens: usage.cached_input_tokens },
            output_tokens: usage.output_tokens,
            output_tokens_details: OutputTokenDetails { reasoning_tokens: usage.thinking_tokens },
            total_tokens: usage.input_tokens.saturating_add(usage.output_tokens),
        }
    }
}

/// What all states of one response share.
#[derive(Debug, Clone)]
pub(super) struct ResponseFrame {
    pub(super) id: String,
    pub(super) stored: Option<StoredId>,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) echo: EchoedFields,
}

impl ResponseFrame {
    /// Of a turn that is stored, or of one that is not.
    pub(super) fn new(stored: Option<StoredId>, created: u64, model: String, echo: EchoedFields) -> Self {
        let id = stored.as_ref().map_or_else(|| random::id("resp"), StoredId::response);
        Self { id, stored, created, model, echo }
    }

    pub(super) fn message_id(&self) -> String {
        self.stored.as_ref().map_or_else(|| random::id("msg"), StoredId::message)
    }

    pub(super) fn call_id(&self, place: usize) -> String {
        self.stored.as_ref().map_or_else(|| random::id("fc"), |stored| stored.call(place))
    }

    /// The response in a state, with its output so far.
    pub(super) fn with(
        &self,
        status: ResponseStatus,
        output: Vec<OutputItem>,
        end: Option<&Done>,
    ) -> ResponseObject {
        let is_incomplete = status == ResponseStatus::Incomplete;
        ResponseObject {
            id: self.id.clone(),
            object: "response",
            created_at: self.created,
            status,
            background: false,
            error: None,
            incomplete_details: is_incomplete.then_some(IncompleteDetails { reason: "max_output_tokens" }),
            model: self.model.clone(),
            output,
            service_tier: "default",
            store: self.stored.is_some(),
            truncation: "disabled",
            usage: end.map(|done| ResponseUsage::from(done.usage.as_ref())),
            user: Null,
            echo: self.echo.clone(),
        }
    }

    /// The response of an answer.
    pub(super) fn whole(&self, done: &Done) -> ResponseObject {
        let message = (!done.text.is_empty())
            .then(|| OutputItem::message(&self.message_id(), ItemStatus::Completed, Some(&done.text)));
        let calls = done.client_calls.iter().enumerate();
        let calls = calls.map(|(place, call)| {
            OutputItem::call(&self.call_id(place), ItemStatus::Completed, call, &call.arguments)
        });
        let output = message.into_iter().chain(calls).collect();
        self.with(ResponseStatus::of(done), output, Some(done))
    }
}
