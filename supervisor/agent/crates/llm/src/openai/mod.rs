//! OpenAI's chat completions, which most providers and local servers speak, each in its own dialect.
//!
//! Format: <https://platform.openai.com/docs/api-reference/chat>; `quirks` says how servers differ.

mod messages;
mod quirks;
mod reader;
mod reasoning;
mod request;
mod thinking;

use std::borrow::Cow;

use quirks::Quirks;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::Value;

use crate::config::Dialect;
use crate::key::{AsHeader as _, Secret};
use crate::model::Request;
use crate::remote::Protocol;
use crate::wire::{Events, Framing};

pub(crate) use quirks::thinks;
pub(crate) use thinking::level;

/// The protocol.
pub(crate) struct OpenAi {
    dialect: Dialect,
    provider: String,
    quirks: Quirks,
}

impl OpenAi {
    pub(crate) fn new(provider: &str, dialect: Dialect) -> Self {
        Self { dialect, provider: provider.to_owned(), quirks: Quirks::of(dialect) }
    }
}

/// The dialect of a host that is known.
pub(crate) fn dialect_of(base: &Url) -> Dialect {
    let host = base.host_str().unwrap_or_default();
    let is = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
    if is("openai.com") || is("openai.azure.com") {
        Dialect::Openai
    } else if is("deepseek.com") {
        Dialect::Deepseek
    } else if is("openrouter.ai") {
        Dialect::Openrouter
    } else if is("mistral.ai") {
        Dialect::Mistral
    } else if is("groq.com") {
        Dialect::Groq
    } else {
        Dialect::Plain
    }
}

impl Protocol for OpenAi {
    type Reader = reader::OpenAiReader;

    const STREAM: &'static str = "text/event-stream";
    const EMBED: Option<&'static str> = Some("/embeddings");

    fn path(&self, _: &Request) -> Cow<'static, str> {
        Cow::Borrowed("/chat/completions")
    }

    fn probe(&self) -> &'static str {
        match self.dialect {
            // Its list of models is open to everybody, and says nothing about the key.
            Dialect::Openrouter => "/key",
            _ => "/models",
        }
    }

    fn body(&self, request: &Request) -> Value {
        request::body(request, &self.provider, &self.quirks.for_model(&request.model))
    }

    fn key_header(&self, key: &Secret) -> Option<(HeaderName, HeaderValue)> {
        Some((AUTHORIZATION, key.header("Bearer ")?))
    }

    fn framing(&self) -> Box<dyn Framing> {
        Box::new(Events::new())
    }

    fn reader(&self, _: &Request) -> Self::Reader {
        reader::OpenAiReader::new(self.quirks)
    }
}
