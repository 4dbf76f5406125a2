//! Anthropic's Messages.
//!
//! Format: <https://platform.claude.com/docs/en/api/messages>, streaming:
//! <https://platform.claude.com/docs/en/build-with-claude/streaming>.

mod reader;
mod request;
mod thinking;

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
}

impl Anthropic {
    pub(crate) fn new(provider: &str) -> Self {
        Self { provider: provider.to_owned() }
    }
}

impl Protocol for Anthropic {
    type Reader = reader::AnthropicReader;

    const ASK: &'static str = "/v1/messages";
    const STREAM: &'static str = "text/event-stream";

    fn probe(&self) -> &'static str {
        "/v1/models?limit=1"
    }

    fn body(&self, request: &Request) -> Value {
        request::body(request, &self.provider)
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

    fn reader(&self, request: &Request) -> Self::Reader {
        reader::AnthropicReader::new(&self.provider, &request.model)
    }
}
