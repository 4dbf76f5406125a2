//! How providers' error bodies are classified.

use std::time::{Duration, SystemTime};

use talon_llm::config::ProviderKind;
use talon_llm::model::{ErrorClass, ProviderError};

use crate::server::{Reply, Server};
use crate::{ask, build, entry, fixture};

async fn failed(kind: ProviderKind, reply: Reply) -> ProviderError {
    let server = Server::start(vec![reply]).await;
    ask(&build(entry(kind, &server.url))).await.0.expect_err("no answer")
}

/// Every fixture below `errors/`, its class, and a word of its advice.
const MEANINGS: &[(&str, ErrorClass, &str)] = &[
    ("openai-401-key", ErrorClass::Auth, "give it one that holds"),
    ("openai-429-rate", ErrorClass::RateLimit, "add a key"),
    ("openai-429-quota", ErrorClass::Billing, "top it up"),
    ("openai-400-context", ErrorClass::Context, "compact it"),
    ("openai-404-model", ErrorClass::Request, "the model's name"),
    ("openai-400-parameter", ErrorClass::Request, "max_completion_tokens"),
    ("openai-403-region", ErrorClass::Auth, "allow it"),
    ("openai-500-server", ErrorClass::Server, "ask again later"),
    ("openai-503-overloaded", ErrorClass::Server, "overloaded"),
    ("anthropic-401-key", ErrorClass::Auth, "refused"),
    ("anthropic-403-permission", ErrorClass::Auth, "another key or model"),
    ("anthropic-400-context", ErrorClass::Context, "compact it"),
    ("anthropic-400-max_tokens", ErrorClass::Context, "compact it"),
    ("anthropic-400-credit", ErrorClass::Billing, "top it up"),
    ("anthropic-402-billing", ErrorClass::Billing, "top it up"),
    ("anthropic-404-model", ErrorClass::Request, "claude-nine"),
    ("anthropic-413-large", ErrorClass::Context, "compact it"),
    ("anthropic-429-rate", ErrorClass::RateLimit, "50,000"),
    ("anthropic-500-api", ErrorClass::Server, "Internal server error"),
    ("anthropic-504-timeout", ErrorClass::Timeout, "ask again"),
    ("anthropic-529-overloaded", ErrorClass::Server, "Overloaded"),
    ("openrouter-401-key", ErrorClass::Auth, "refused"),
    ("openrouter-402-credits", ErrorClass::Billing, "top it up"),
    ("openrouter-403-moderation", ErrorClass::Request, "flagged"),
    ("openrouter-408-timeout", ErrorClass::Timeout, "ask again"),
    ("openrouter-429-upstream", ErrorClass::RateLimit, "rate-limited upstream"),
    ("openrouter-502-down", ErrorClass::Server, "another provider"),
    ("deepseek-402-balance", ErrorClass::Billing, "Insufficient Balance"),
    ("deepseek-422-parameters", ErrorClass::Request, "max_tokens"),
    ("deepseek-400-reasoning", ErrorClass::Request, "reasoning_content"),
    ("vllm-400-context", ErrorClass::Context, "compact it"),
    ("vllm-404-model", ErrorClass::Request, "the model's name"),
    ("llamacpp-400-context", ErrorClass::Context, "compact it"),
    ("ollama-404-model", ErrorClass::Request, "not found"),
    ("ollama-400-tools", ErrorClass::Request, "does not support tools"),
    ("ollama-500-memory", ErrorClass::Server, "12.1 GiB"),
    ("gemini-400-key", ErrorClass::Auth, "refused"),
    ("gemini-429-quota", ErrorClass::RateLimit, "too many requests"),
    ("fastapi-422-detail", ErrorClass::Request, "Field required"),
];

// Promises: AGENT-16
#[tokio::test]
async fn every_documented_error_has_its_class_and_a_way_out() {
    for (name, class, way_out) in MEANINGS {
        let status: u16 = name.split('-').nth(1).expect("a status").parse().expect("a number");
        let kind = match name.split('-').next() {
            Some("anthropic") => ProviderKind::Anthropic,
            Some("ollama") => ProviderKind::Ollama,
            _ => ProviderKind::Openai,
        };
        let error = failed(kind, Reply::json(status, fixture(&format!("errors/{name}.json")))).await;
        assert_eq!((error.class, error.status), (*class, Some(status)), "{name}: {error}");
        assert!(error.message.contains(way_out), "{name}: {error}");
        assert!(!error.message.contains("sk-"), "{name}: {error}");
        assert!(error.message.len() <= talon_llm::limits::MAX_MESSAGE_BYTES);
    }
}

#[test]
fn every_error_fixture_is_looked_at() {
    let dir = format!("{}/tests/fixtures/errors", env!("CARGO_MANIFEST_DIR"));
    for file in std::fs::read_dir(dir).expect("the fixtures") {
        let name = file.expect("a file").file_name().to_string_lossy().replace(".json", "");
        assert!(MEANINGS.iter().any(|(known, ..)| *known == name), "{name}");
    }
}

#[tokio::test]
async fn when_to_ask_again_is_read() {
    let limited =
        |value: &str| Reply::json(429, fixture("errors/openai-429-rate.json")).header("retry-after", value);
    let seconds = failed(ProviderKind::Openai, limited("7")).await;
    assert_eq!(seconds.retry_after, Some(Duration::from_secs(7)));
    assert!(seconds.message.contains("in 7 s"), "{seconds}");
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3600));
    let dated = failed(ProviderKind::Openai, limited(&date)).await.retry_after.expect("a time");
    assert!(dated > Duration::ZERO && dated <= Duration::from_secs(3600), "{dated:?}");
    // What cannot be read is left to the text of the error, which says 210 ms.
    let stated = failed(ProviderKind::Openai, limited("soon")).await;
    assert_eq!(stated.retry_after, Some(Duration::from_millis(210)));
    let unsaid = Reply::json(429, r#"{"error": {"message": "slow down"}}"#).header("retry-after", "soon");
    assert_eq!(failed(ProviderKind::Openai, unsaid).await.retry_after, None);
}

#[tokio::test]
async fn an_error_in_the_middle_of_an_answer_is_one() {
    for (kind, path, class, said) in [
        (ProviderKind::Openai, "openai/error-in-stream.sse", ErrorClass::Server, "had an error"),
        (ProviderKind::Openai, "openrouter/error-in-stream.sse", ErrorClass::Server, "disconnected"),
        (ProviderKind::Anthropic, "anthropic/error-in-stream.sse", ErrorClass::Server, "Overloaded"),
        (ProviderKind::Ollama, "ollama/error-in-stream.ndjson", ErrorClass::Server, "unexpected EOF"),
    ] {
        let reply = if kind == ProviderKind::Ollama {
            Reply::lines(fixture(path))
        } else {
            Reply::events(fixture(path))
        };
        let error = failed(kind, reply).await;
        assert_eq!(error.class, class, "{path}: {error}");
        assert!(error.message.contains(said), "{path}: {error}");
    }
}

#[tokio::test]
async fn an_error_that_comes_with_200_is_one() {
    let error =
        failed(ProviderKind::Openai, Reply::json(200, fixture("errors/openrouter-402-credits.json"))).await;
    assert_eq!(error.class, ErrorClass::Billing, "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut other = Server::start(vec![Reply::events(fixture("openai/text.sse"))]).await;
    for status in [301, 302, 307, 308] {
        let to = format!("{}/chat/completions", other.url);
        let error = failed(ProviderKind::Openai, Reply::json(status, "").header("location", &to)).await;
        assert_eq!((error.class, error.status), (ErrorClass::Request, Some(status)));
        assert!(error.message.contains(&to) && error.message.contains("base_url"), "{error}");
    }
    assert_eq!(other.unseen(), 0, "nobody was asked there");
}

#[tokio::test]
async fn an_error_body_that_is_no_json_is_quoted_in_one_bounded_line() {
    let text = format!("upstream\r\nconnect error\u{1b}[31m {}", "x".repeat(200_000));
    let error = failed(ProviderKind::Openai, Reply::new(503, "text/plain", text)).await;
    assert_eq!(error.class, ErrorClass::Server);
    assert!(error.message.contains("\"upstream connect error [31m xxx"), "{error}");
    assert!(!error.message.contains(char::is_control) && error.message.len() < 600, "{error}");
}
