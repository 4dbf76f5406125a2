//! Anthropic's Messages.
//!
//! Format: <https://platform.claude.com/docs/en/api/messages>, streaming:
//! <https://platform.claude.com/docs/en/build-with-claude/streaming>.

mod reader;
mod request;
mod thinking;
mod tool_search;

use std::borrow::Cow;

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::key::{AsHeader as _, Secret};
use crate::model::Request;
use crate::remote::Protocol;
use crate::wire::{Events, Framing};

/// The version of the format, which has been the same since 2023: what is new is added to it.
const VERSION: &str = "2023-06-01";

/// The protocol.
pub(crate) struct Anthropic {
    provider: String,
    /// Whether the server has the search for tools.
    searches_tools: bool,
}

impl Anthropic {
    pub(crate) fn new(provider: &str, searches_tools: bool) -> Self {
        Self { provider: provider.to_owned(), searches_tools }
    }
}

impl Protocol for Anthropic {
    type Reader = reader::AnthropicReader;

    const STREAM: &'static str = "text/event-stream";

    fn searches_tools(&self) -> bool {
        self.searches_tools
    }

    fn path(&self, _: &Request) -> Cow<'static, str> {
        Cow::Borrowed("/v1/messages")
    }

    fn probe(&self) -> &'static str {
        "/v1/models?limit=1"
    }

    fn body(&self, request: &Request) -> Value {
        request::body(request, &self.provider, self.searches_tools)
    }

    fn key_header(&self, key: &Secret) -> Option<(HeaderName, HeaderValue)> {
        Some((HeaderName::from_static("x-api-key"), key.header("")?))
    }

    fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        vec![(HeaderName::from_static("anthropic-version"), HeaderValue::from_static(VERSION))]
    }

    fn framing(&self) -> Box<dyn Framing> {
        Box::new(Events::new())
    }

    fn reader(&self, _: &Request) -> Self::Reader {
        reader::AnthropicReader::default()
    }
}
