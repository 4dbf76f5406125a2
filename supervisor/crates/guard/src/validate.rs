//! Decodes the plugin's answer and accepts it only if it is a valid answer to this very call.
//!
//! It works on the raw message, before the text is touched. For every defect the caller gets the same generic
//! error (`bad_result`) and nothing of the answer; the log says which defect it was, through `rescue`.
//!
//! | defect | outcome |
//! |---|---|
//! | bytes that are no protobuf message, or one cut short | refused, `bad_result` |
//! | a known field of the wrong type | refused, `bad_result` |
//! | a text field that is not UTF-8 | refused, `bad_result` |
//! | `call_id` is not the call's, or empty | refused, `bad_result`, content dropped |
//! | unknown fields | dropped |
//! | a field sent twice | the last one counts, as protobuf specifies |
//!
//! The digest is taken here, of the message as it came ([`Digest::of_message`]). If the host has a
//! [`RawStore`], the message is stored here for an operator, valid or not.
//!
//! The sanitizer handles control characters and structured content that is not JSON.

use std::cell::Cell;
use std::mem::take;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use pin_project_lite::pin_project;
use prost::Message as _;
use talon_proto::plugin::ToolResultResponse;
use talon_sanitize::Raw;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{Answer, Outcome, RawAnswer};
use crate::call::Call;
use crate::digest::Digest;
use crate::error::CallError;
use crate::executor::Executor;
use crate::input_request::{self, InputRequestError};
use crate::raw_store::{RawMessage, RawStore};
use crate::reason;
use crate::text::Quoted;

/// Why an answer was not accepted. For the log: the caller gets one generic text.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// Not protobuf, cut short, a field of the wrong type, or text that is not UTF-8.
    #[error("the answer is not a valid ToolResultResponse")]
    Undecodable(#[from] prost::DecodeError),
    /// An answer to another call, or to none.
    #[error("the answer is for call {}, not for {}", Quoted(.got), Quoted(.expected))]
    WrongCallId {
        /// The id of the call.
        expected: String,
        /// The id in the answer.
        got: String,
    },
    /// A question to the caller's user that is none.
    #[error("the plugin's question cannot be asked: {0}")]
    InputRequest(#[from] InputRequestError),
}

impl From<ValidateError> for CallError {
    fn from(error: ValidateError) -> Self {
        Self::refused(reason::BAD_RESULT, "plugin returned an invalid result").caused_by(error)
    }
}

/// Makes [`Validate`] services.
#[derive(Debug, Clone)]
pub struct ValidateLayer {
    store: RawStore,
    executor: Executor,
}

impl Default for ValidateLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl ValidateLayer {
    /// A layer that stores no messages.
    #[must_use]
    pub fn new() -> Self {
        Self::with_store(RawStore::new(0))
    }

    /// A layer that stores every message here, as it came.
    #[must_use]
    pub fn with_store(store: RawStore) -> Self {
        Self { store, executor: Executor::default() }
    }

    /// Sets what runs the work on large answers.
    #[must_use]
    pub fn executor(mut self, executor: Executor) -> Self {
        self.executor = executor;
        self
    }
}

impl<S> Layer<S> for ValidateLayer {
    type Service = Validate<S>;
    fn layer(&self, inner: S) -> Validate<S> {
        Validate { store: self.store.clone(), executor: self.executor, inner }
    }
}

/// Accepts valid answers only: see the [module](self).
#[derive(Debug, Clone)]
pub struct Validate<S> {
    store: RawStore,
    executor: Executor,
    inner: S,
}

impl<S> Service<Call> for Validate<S>
where
    S: Service<Call, Response = RawAnswer>,
    S::Error: Into<CallError>,
{
    type Response = Answer;
    type Error = CallError;
    type Future = ResponseFuture<S::Future>;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, call: Call) -> Self::Future {
        let call_id = call.id.clone();
        let takes_input_requests = call.takes_input_requests;
        let keeper = self.store.is_enabled().then(|| RawMessageRecorder {
            store: self.store.clone(),
            plugin: call.plugin.clone(),
            action: call.action.clone(),
        });
        ResponseFuture {
            future: self.inner.call(call),
            call_id,
            takes_input_requests,
            keeper,
            executor: self.executor,
        }
    }
}

pin_project! {
    /// The answer to one call.
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        future: F,
        call_id: Arc<str>,
        takes_input_requests: bool,
        keeper: Option<RawMessageRecorder>,
        executor: Executor,
    }
}

/// Stores the message of one call.
#[derive(Debug)]
struct RawMessageRecorder {
    store: RawStore,
    plugin: Arc<str>,
    action: String,
}

impl RawMessageRecorder {
    fn record(self, raw: &RawAnswer, digest: Digest, call_id: &str) {
        self.store.store(RawMessage {
            call_id: call_id.to_owned(),
            plugin: self.plugin.to_string(),
            action: self.action,
            received: SystemTime::now(),
            digest,
            message: raw.0.clone(),
        });
    }
}

impl<F, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<RawAnswer, E>>,
    E: Into<CallError>,
{
    type Output = Result<Answer, CallError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let raw = ready!(this.future.poll(cx)).map_err(Into::into)?;
        let (call_id, keeper) = (this.call_id, this.keeper.take());
        let takes_input_requests = *this.takes_input_requests;
        let accepted = this.executor.run(raw.0.len(), || {
            let digest = Digest::of_message(raw.0.clone());
            if let Some(keeper) = keeper {
                keeper.record(&raw, digest.clone(), call_id);
            }
            accept(raw, digest, call_id, takes_input_requests)
        });
        Poll::Ready(accepted.map_err(Into::into))
    }
}

thread_local! {
    /// An empty buffer into which the next answer's id is decoded. It is only compared, so it needs no new
    /// allocation.
    static ID: Cell<String> = const { Cell::new(String::new()) };
}

/// A buffer for a longer id is freed. By contract ids have at most 128 characters.
const MAX_REUSED_ID_BYTES: usize = 512;

/// The error of an answer that is a question which this caller cannot put to its user.
const UNASKED: &str = "the tool asks its user for something before it can answer, and this caller cannot put a question to a \
    user: call it where a person can answer, such as with `talon call` in a terminal";

fn accept(
    raw: RawAnswer,
    digest: Digest,
    call_id: &str,
    takes_input_requests: bool,
) -> Result<Answer, ValidateError> {
    let mut message = ToolResultResponse { call_id: ID.take(), ..Default::default() };
    message.merge(raw.0)?;
    let mut id = take(&mut message.call_id);
    if id != call_id {
        return Err(ValidateError::WrongCallId { expected: call_id.to_owned(), got: id });
    }
    if id.capacity() <= MAX_REUSED_ID_BYTES {
        id.clear();
        ID.set(id);
    }
    let mut input_request = None;
    if let Some(request) = message.input_request.take().filter(|_| message.error.is_empty()) {
        if takes_input_requests {
            input_request::check(&request, &message.content)?;
            input_request = Some(Box::new(request));
        } else {
            UNASKED.clone_into(&mut message.error);
        }
    }
    let outcome = if message.error.is_empty() { Outcome::Ok } else { Outcome::ToolError };
    Ok(Answer {
        outcome,
        content: Raw::from(message.content),
        error: Raw::from(message.error),
        structured_content: Raw::from(message.structured_content),
        media: message.media,
        input_request,
        digest: Some(digest),
        written_by: None,
    })
}

#[cfg(test)]
mod tests;
