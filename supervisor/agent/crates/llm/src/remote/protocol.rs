//! What differs between providers over HTTP: their format.

use std::borrow::Cow;

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use super::{Assembly, Failure};
use crate::key::Secret;
use crate::model::Request;
use crate::wire::{Frame, Framing};

/// One provider's format.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// Reads one answer.
    type Reader: Reader;

    /// What an answer's `Content-Type` starts with.
    const STREAM: &'static str;
    /// The path of OpenAI's request for vectors, where the provider has it.
    const EMBED: Option<&'static str> = None;
    /// Whether it searches tools itself, at least for some of its models.
    fn searches_tools(&self) -> bool {
        false
    }
    /// The path of a question.
    fn path(&self, request: &Request) -> Cow<'static, str>;
    /// The path of a cheap request that only succeeds if the provider can be used.
    fn probe(&self) -> &'static str;
    /// The question.
    fn body(&self, request: &Request) -> Value;
    /// The header with the key.
    fn key_header(&self, key: &Secret) -> Option<(HeaderName, HeaderValue)>;
    /// Headers of every request.
    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        Vec::new()
    }
    /// Splits an answer into frames.
    fn framing(&self) -> Box<dyn Framing>;
    /// Reads the answer to a request.
    fn reader(&self, request: &Request) -> Self::Reader;
}

/// Reads one answer, frame by frame.
pub(crate) trait Reader: Send {
    /// Reads a frame.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be read or says that there is no answer.
    fn read(&mut self, frame: &Frame, answer: &mut Assembly<'_>) -> Result<Step, Failure>;

    /// Reads an answer that came as one JSON document, for providers that sometimes do that.
    ///
    /// # Errors
    /// [`Failure`]
    fn read_whole(&mut self, _: &Value, _: &mut Assembly<'_>) -> Result<(), Failure> {
        Err(Failure::unexpected("it answered with one JSON document instead of a stream: check base_url"))
    }
}

/// Whether an answer continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is more.
    More,
    /// This was the last frame.
    Last,
}
