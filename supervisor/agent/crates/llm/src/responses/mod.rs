//! OpenAI's Responses.
//!
//! Format: <https://platform.openai.com/docs/api-reference/responses/create>, streaming:
//! <https://platform.openai.com/docs/api-reference/responses-streaming>, thoughts:
//! <https://platform.openai.com/docs/guides/reasoning>.
//!
//! Nothing is stored there (`store: false`): the whole transcript goes along each time, with thoughts as the
//! encrypted items that came.

mod input;
mod reader;
mod request;

use std::borrow::Cow;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::Value;

use crate::key::{AsHeader as _, Secret};
use crate::model::Request;
use crate::remote::Protocol;
use crate::wire::{Events, Framing};

/// The protocol.
pub(crate) struct Responses {
    provider: String,
}

impl Responses {
    pub(crate) fn new(provider: &str) -> Self {
        Self { provider: provider.to_owned() }
    }
}

impl Protocol for Responses {
    type Reader = reader::ResponsesReader;

    const STREAM: &'static str = "text/event-stream";

    fn path(&self, _: &Request) -> Cow<'static, str> {
        Cow::Borrowed("/responses")
    }

    fn probe(&self) -> &'static str {
        "/models"
    }

    fn body(&self, request: &Request) -> Value {
        request::body(request, &self.provider)
    }

    fn key_header(&self, key: &Secret) -> Option<(HeaderName, HeaderValue)> {
        Some((AUTHORIZATION, key.header("Bearer ")?))
    }

    fn framing(&self) -> Box<dyn Framing> {
        Box::new(Events::new())
    }

    fn reader(&self, _: &Request) -> Self::Reader {
        reader::ResponsesReader::default()
    }
}
