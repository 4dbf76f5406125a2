//! Google's `generateContent`.
//!
//! Format: <https://ai.google.dev/api/generate-content>, calls:
//! <https://ai.google.dev/gemini-api/docs/function-calling>, signatures:
//! <https://ai.google.dev/gemini-api/docs/thought-signatures>.

mod contents;
mod reader;
mod request;
mod version;

use std::borrow::Cow;

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::key::{AsHeader as _, Secret};
use crate::model::Request;
use crate::remote::Protocol;
use crate::wire::{Events, Framing};

/// The protocol.
pub(crate) struct Gemini {
    provider: String,
}

impl Gemini {
    pub(crate) fn new(provider: &str) -> Self {
        Self { provider: provider.to_owned() }
    }
}

impl Protocol for Gemini {
    type Reader = reader::GeminiReader;

    const STREAM: &'static str = "text/event-stream";

    fn path(&self, request: &Request) -> Cow<'static, str> {
        let model = request.model.strip_prefix("models/").unwrap_or(&request.model);
        Cow::Owned(format!("/v1beta/models/{}:streamGenerateContent?alt=sse", in_path(model)))
    }

    fn probe(&self) -> &'static str {
        "/v1beta/models?pageSize=1"
    }

    fn body(&self, request: &Request) -> Value {
        request::body(request, &self.provider)
    }

    /// Not in the URL, where it would be logged on the way.
    fn key_header(&self, key: &Secret) -> Option<(HeaderName, HeaderValue)> {
        Some((HeaderName::from_static("x-goog-api-key"), key.header("")?))
    }

    fn framing(&self) -> Box<dyn Framing> {
        Box::new(Events::new())
    }

    fn reader(&self, _: &Request) -> Self::Reader {
        reader::GeminiReader::default()
    }
}

/// A model's name as one part of a path: a slash, a dot-dot or a question mark in it changes nothing else.
fn in_path(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let is_dots = name.bytes().all(|byte| byte == b'.');
    name.bytes()
        .map(
            |byte| {
                if plain(&byte) && !is_dots { char::from(byte).to_string() } else { format!("%{byte:02X}") }
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_part_of_the_path() {
        assert_eq!(in_path("gemini-2.5-flash"), "gemini-2.5-flash");
        assert_eq!(in_path("../files?key=x"), "..%2Ffiles%3Fkey%3Dx");
        assert_eq!(in_path(".."), "%2E%2E");
    }
}
