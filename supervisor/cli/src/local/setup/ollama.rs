//! Which models an Ollama on this machine has.

use std::io;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Ollama's own default (`OLLAMA_HOST` in its documentation).
const DEFAULT_PORT: u16 = 11_434;
const DEFAULT_HOST: &str = "127.0.0.1";
/// A server on this machine answers a list at once; beyond that it is taken for none.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// The longest answer that is read: a list of thousands of models is smaller.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// Models that are asked whether they can call tools, the most recently changed first.
const MAX_ASKED: usize = 20;

/// A model that can be talked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OllamaModel {
    pub(super) name: String,
    pub(super) can_call_tools: bool,
    /// Its longest context, in tokens.
    pub(super) context: Option<u64>,
}

/// Where an Ollama listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OllamaAddress {
    host: String,
    port: u16,
}

/// Why an Ollama says nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum OllamaError {
    #[error("no Ollama listens at {address}")]
    NoListener { address: String },
    #[error("{address} does not answer within {} seconds", ANSWER_TIMEOUT.as_secs())]
    Timeout { address: String },
    #[error("{address} does not answer as an Ollama: {why}")]
    BadAnswer { address: String, why: String },
}

impl OllamaAddress {
    /// The address in `OLLAMA_HOST`, as Ollama reads it, or its default. `None`: it is not one of plain HTTP.
    pub(super) fn parse(variable: &str) -> Option<Self> {
        let text = variable.trim().trim_end_matches('/');
        let text = text.strip_prefix("http://").unwrap_or(text);
        if text.contains('/') {
            return None;
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.ends_with(':') => (host, port.parse().ok()?),
            _ => (text, DEFAULT_PORT),
        };
        // A server that listens on all addresses is reached at this one.
        let host = if host.is_empty() || host == "0.0.0.0" { DEFAULT_HOST } else { host };
        let is_host = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
        is_host.then(|| Self { host: host.to_owned(), port })
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}:{}", self.host, self.port)
    }

    pub(super) fn is_default(&self) -> bool {
        self.host == DEFAULT_HOST && self.port == DEFAULT_PORT
    }

    /// The models that can be talked with, the most recently changed first.
    pub(super) async fn models(&self) -> Result<Vec<OllamaModel>, OllamaError> {
        let names = names(&self.ask(Method::GET, "/api/tags", Value::Null).await?);
        let mut models = Vec::new();
        for name in names.into_iter().take(MAX_ASKED) {
            let about = self.ask(Method::POST, "/api/show", json!({ "model": name })).await?;
            models.extend(model(name, &about));
        }
        Ok(models)
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Value, OllamaError> {
        let address = format!("{}:{}", self.host, self.port);
        let asked = async {
            let stream = TcpStream::connect(&address).await.map_err(AskError::Connect)?;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            // Its errors are the request's, too.
            let connection = tokio::spawn(connection);
            let body = if body.is_null() { String::new() } else { body.to_string() };
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header("host", &address)
                .header("content-type", "application/json")
                .body(Full::new(bytes::Bytes::from(body)))?;
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            let read = Limited::new(answer.into_body(), MAX_ANSWER_BYTES).collect().await;
            connection.abort();
            let bytes = read.map_err(|error| AskError::Body(error.to_string()))?.to_bytes();
            if !status.is_success() {
                return Err(AskError::Body(format!("{path} is answered with {status}")));
            }
            serde_json::from_slice(&bytes).map_err(|error| AskError::Body(error.to_string()))
        };
        match timeout(ANSWER_TIMEOUT, asked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(AskError::Connect(_))) => Err(OllamaError::NoListener { address }),
            Ok(Err(error)) => Err(OllamaError::BadAnswer { address, why: error.to_string() }),
            Err(_) => Err(OllamaError::Timeout { address }),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Connect(io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Request(#[from] tonic::codegen::http::Error),
    #[error("{0}")]
    Body(String),
}

/// The names in an answer of `/api/tags`. A name that the file could not hold as it is, is left out.
fn names(tags: &Value) -> Vec<String> {
    let listed = tags["models"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = listed.iter().filter_map(|model| model["name"].as_str());
    names.filter(|name| is_plain(name)).map(str::to_owned).collect()
}

/// Whether a name is letters, digits and what Ollama's names have between them.
pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.ends_with(':')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:/-".contains(&byte))
}

/// The model of an answer of `/api/show`; `None` if it only makes embeddings. An Ollama before 0.6.4 names no
/// capabilities.
fn model(name: String, about: &Value) -> Option<OllamaModel> {
    let known = about["capabilities"].as_array();
    let can = |what: &str| known.is_some_and(|all| all.iter().any(|one| one == what));
    if known.is_some() && !can("completion") {
        return None;
    }
    let context = about["model_info"].as_object().and_then(|facts| {
        let length = facts.iter().find(|(key, _)| key.ends_with(".context_length"));
        length.and_then(|(_, value)| value.as_u64())
    });
    Some(OllamaModel { name, can_call_tools: can("tools"), context })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_ollama_reads_it() {
        let url = |text: &str| OllamaAddress::parse(text).map(|address| address.base_url());
        for (text, expected) in [
            ("", "http://127.0.0.1:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            (":8080", "http://127.0.0.1:8080"),
            ("http://gpu.example.org:80/", "http://gpu.example.org:80"),
            ("[::1]:11434", "http://[::1]:11434"),
        ] {
            assert_eq!(url(text).as_deref(), Some(expected), "{text}");
        }
        for no in ["https://gpu.example.org", "http://x/y", "x:port", "a b"] {
            assert_eq!(url(no), None, "{no}");
        }
        assert!(OllamaAddress::parse("").is_some_and(|address| address.is_default()));
    }

    #[test]
    fn models_are_read_with_what_they_can() {
        let tags = json!({ "models": [{ "name": "qwen3:8b" }, { "name": "a: {b}" }, {}] });
        assert_eq!(names(&tags), ["qwen3:8b"]);
        assert!(names(&json!("nothing")).is_empty());
        let about = json!({ "capabilities": ["completion", "tools"], "model_info": { "qwen3.context_length": 40960 } });
        let found = model("qwen3:8b".into(), &about).unwrap();
        assert!(found.can_call_tools && found.context == Some(40960), "{found:?}");
        assert_eq!(model("embed".into(), &json!({ "capabilities": ["embedding"] })), None);
        assert!(!model("old".into(), &json!({})).unwrap().can_call_tools);
    }
}
