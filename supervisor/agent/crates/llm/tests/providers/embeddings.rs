//! Vectors of texts.

use std::time::Duration;

use serde_json::json;
use talon_llm::KeySource;
use talon_llm::config::ProviderKind;
use talon_llm::model::{EmbeddingRequest, ErrorClass};

use crate::server::{Reply, Server};
use crate::{build, build_with, entry};

fn request(texts: &[&str]) -> EmbeddingRequest {
    EmbeddingRequest {
        model: "text-embedding-3-small".to_owned(),
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        dimensions: Some(256),
        timeout: Duration::from_secs(60),
    }
}

fn vectors() -> Reply {
    // [1, 0] and [0, 1] as 32-bit floats.
    let (first, second) = ("AACAPwAAAAA=", "AAAAAAAAgD8=");
    let data = json!([
        { "object": "embedding", "index": 1, "embedding": second },
        { "object": "embedding", "index": 0, "embedding": first },
    ]);
    Reply::json(200, json!({ "object": "list", "data": data, "model": "text-embedding-3-small" }).to_string())
}

// Promises: AGENT-110
#[tokio::test]
async fn it_asks_in_openais_form_and_orders_by_index() {
    for (kind, path) in [(ProviderKind::Openai, "/embeddings"), (ProviderKind::Ollama, "/v1/embeddings")] {
        let mut server = Server::start(vec![vectors()]).await;
        let found = build(entry(kind, &server.url)).embed(&request(&["a", "b"])).await;
        assert_eq!(found.expect("vectors"), [[1.0, 0.0], [0.0, 1.0]]);
        let asked = server.asked().await;
        assert!(asked.line().starts_with(&format!("POST {path} ")), "{}", asked.line());
        let body = json!({
            "model": "text-embedding-3-small", "input": ["a", "b"], "encoding_format": "base64", "dimensions": 256,
        });
        assert_eq!(asked.body, body);
    }
}

// Promises: AGENT-110
#[tokio::test]
async fn errors_have_their_class_and_the_next_key_is_tried() {
    let too_long = r#"{"error":{"message":"This model's maximum context length is 8192 tokens, however you requested 9000 tokens.","type":"invalid_request_error","param":null,"code":null}}"#;
    let limited =
        r#"{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"#;
    for (reply, class) in [
        (Reply::json(400, too_long), ErrorClass::Context),
        (Reply::json(429, limited), ErrorClass::RateLimit),
        (Reply::json(401, r#"{"error":{"message":"Incorrect API key provided"}}"#), ErrorClass::Auth),
        (Reply::json(200, r#"{"data":[]}"#), ErrorClass::Server),
        (Reply::new(200, "text/html", "<html>a login page</html>"), ErrorClass::Server),
    ] {
        let server = Server::start(vec![reply]).await;
        let provider = build(entry(ProviderKind::Openai, &server.url));
        let error = provider.embed(&request(&["a", "b"])).await.expect_err("no vectors");
        assert_eq!(error.class, class, "{error}");
    }
    let server = Server::start(vec![Reply::json(429, limited), vectors()]).await;
    let mut two = entry(ProviderKind::Openai, &server.url);
    two.api_keys = ["ONE", "TWO"].map(|name| KeySource::Env(name.to_owned())).into();
    let provider = build_with(two, &|name| Some(format!("sk-{name}-0123456789")));
    assert_eq!(provider.embed(&request(&["a", "b"])).await.expect("vectors").len(), 2);
}

// Promises: AGENT-110
#[tokio::test]
async fn protocols_without_vectors_say_so() {
    let provider = build(entry(ProviderKind::Anthropic, "http://127.0.0.1:9"));
    let error = provider.embed(&request(&["a"])).await.expect_err("none");
    assert_eq!(error.class, ErrorClass::Request);
    assert!(error.message.contains("openai or ollama"), "{error}");
}
