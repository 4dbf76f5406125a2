//! Ollama's own `/api/chat`: a JSON object on each line.
//!
//! Format: <https://docs.ollama.com/api/chat>.

mod reader;
mod request;

use std::borrow::Cow;

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::Value;

use crate::key::{AsHeader as _, Secret};
use crate::model::Request;
use crate::remote::Protocol;
use crate::wire::{Framing, LineBreaks, Lines};

/// The protocol.
pub(crate) struct Ollama {
    num_ctx: Option<u32>,
}

impl Ollama {
    pub(crate) fn new(num_ctx: Option<u32>) -> Self {
        Self { num_ctx }
    }
}

impl Protocol for Ollama {
    type Reader = reader::OllamaReader;

    /// Proxies change what is behind it, and one line of NDJSON is JSON: all of it is read line by line.
    const STREAM: &'static str = "application/";
    // In OpenAI's form, which it has beside its own.
    const EMBED: Option<&'static str> = Some("/v1/embeddings");

    fn path(&self, _: &Request) -> Cow<'static, str> {
        Cow::Borrowed("/api/chat")
    }

    fn probe(&self) -> &'static str {
        "/api/tags"
    }

    fn body(&self, request: &Request) -> Value {
        request::body(request, self.num_ctx)
    }

    /// Ollama itself knows no keys; ollama.com and proxies in front of it do.
    fn key_header(&self, key: &Secret) -> Option<(HeaderName, HeaderValue)> {
        Some((AUTHORIZATION, key.header("Bearer ")?))
    }

    fn framing(&self) -> Box<dyn Framing> {
        Box::new(Lines::new(LineBreaks::Lf))
    }

    fn reader(&self, _: &Request) -> Self::Reader {
        reader::OllamaReader::default()
    }
}
