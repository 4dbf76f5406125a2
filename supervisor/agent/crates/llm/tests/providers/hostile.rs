//! Providers that hang, disconnect, send something else, or never stop.

use talon_llm::config::{ProviderKind, TimeSpan};
use talon_llm::limits;
use talon_llm::model::{ErrorClass, Finish, ProviderError};

use crate::server::{BodyEnd, Reply, Server};
use crate::{ask, build, entry, fixture, impatient, restless};

async fn failed(kind: ProviderKind, reply: Reply) -> ProviderError {
    let server = Server::start(vec![reply]).await;
    ask(&build(entry(kind, &server.url))).await.0.expect_err("no answer")
}

fn streamed(kind: ProviderKind, path: &str) -> Reply {
    if kind == ProviderKind::Ollama { Reply::lines(fixture(path)) } else { Reply::events(fixture(path)) }
}

const HALVES: [(ProviderKind, &str); 3] = [
    (ProviderKind::Openai, "openai/half.sse"),
    (ProviderKind::Anthropic, "anthropic/half.sse"),
    (ProviderKind::Ollama, "ollama/half.ndjson"),
];

// Promises: AGENT-12
#[tokio::test]
async fn half_a_stream_is_no_answer() {
    for (kind, path) in HALVES {
        for end in [BodyEnd::Whole, BodyEnd::Cut] {
            let error = failed(kind, streamed(kind, path).ends(end)).await;
            assert_eq!(error.class, ErrorClass::Network, "{path} {end:?}: {error}");
            assert!(error.message.contains("broke off"), "{path} {end:?}: {error}");
        }
    }
}

#[tokio::test]
async fn silence_in_the_middle_of_an_answer_ends_it() {
    for (kind, path) in HALVES {
        let mut server = Server::start(vec![streamed(kind, path).ends(BodyEnd::Hang)]).await;
        let error = ask(&build(restless(kind, &server.url))).await.0.expect_err("no answer");
        assert_eq!(error.class, ErrorClass::Timeout, "{path}: {error}");
        assert!(error.message.contains("timeouts.between"), "{path}: {error}");
        server.gone().await;
    }
}

#[tokio::test]
async fn a_provider_that_says_nothing_is_not_waited_for() {
    for reply in [Reply::mute(), Reply::events(": keep-alive\n\n").ends(BodyEnd::Hang)] {
        let mut server = Server::start(vec![reply]).await;
        let error = ask(&build(impatient(ProviderKind::Openai, &server.url))).await.0.expect_err("no answer");
        assert_eq!(error.class, ErrorClass::Timeout, "{error}");
        assert!(error.message.contains("timeouts.first_token"), "{error}");
        server.gone().await;
    }
}

// Promises: AGENT-12
#[tokio::test]
async fn signs_of_life_are_no_answer() {
    let reply = Reply::events(": OPENROUTER PROCESSING\n\n").ends(BodyEnd::Endless);
    let server = Server::start(vec![reply]).await;
    let error = ask(&build(impatient(ProviderKind::Openai, &server.url))).await.0.expect_err("no answer");
    assert!(matches!(error.class, ErrorClass::Timeout | ErrorClass::Server), "{error}");
}

#[tokio::test]
async fn the_whole_answer_has_a_limit_of_its_own() {
    let mut entry = entry(ProviderKind::Openai, "");
    entry.timeouts.total = TimeSpan::from_millis(300);
    let mut server = Server::start(vec![Reply::events(fixture("openai/half.sse")).ends(BodyEnd::Hang)]).await;
    entry.base_url = Some(server.url.clone());
    let error = ask(&build(entry)).await.0.expect_err("no answer");
    assert_eq!(error.class, ErrorClass::Timeout);
    assert!(error.message.contains("timeouts.total"), "{error}");
    server.gone().await;
}

#[tokio::test]
async fn a_whole_answer_without_its_end_is_one() {
    let text = fixture("openai/text.sse").replace("data: [DONE]\n\n", "");
    for end in [BodyEnd::Hang, BodyEnd::Cut, BodyEnd::Whole] {
        let server = Server::start(vec![Reply::events(text.clone()).ends(end)]).await;
        let answer = ask(&build(restless(ProviderKind::Openai, &server.url))).await.0;
        assert_eq!(answer.expect("all was said").text, "Grüße aus Zürich 😀.", "{end:?}");
    }
}

// Promises: AGENT-12
#[tokio::test]
async fn a_web_page_is_named_as_one() {
    let page = "<!DOCTYPE html><html><head><title>Sign in to Corp WiFi</title></head>…</html>";
    for kind in [ProviderKind::Openai, ProviderKind::Anthropic, ProviderKind::Ollama] {
        let page = Reply::new(200, "text/html; charset=utf-8", page);
        let error = failed(kind, page).await;
        assert_eq!(error.class, ErrorClass::Server, "{error}");
        assert!(error.message.contains("web page"), "{error}");
        assert!(error.message.contains("Sign in to Corp WiFi"), "{error}");
    }
    let error = failed(ProviderKind::Openai, Reply::new(404, "text/html", page)).await;
    assert_eq!(error.class, ErrorClass::Request);
    assert!(error.message.contains("check base_url"), "{error}");
    let gateway =
        failed(ProviderKind::Openai, Reply::new(502, "text/html", "<html><h1>502</h1></html>")).await;
    assert_eq!((gateway.class, gateway.status), (ErrorClass::Server, Some(502)));
}

#[tokio::test]
async fn something_else_than_the_format_is_no_answer() {
    for (kind, body) in [
        (ProviderKind::Openai, "data: <html>\n\n"),
        (ProviderKind::Openai, "data: [1]\n\n"),
        (ProviderKind::Anthropic, "data: {\"a\":1}\n\n"),
        (ProviderKind::Anthropic, "data: no\n\n"),
        (ProviderKind::Ollama, "data: {}\n"),
        (ProviderKind::Ollama, "{\"status\":\"ok\"}\n"),
    ] {
        let reply = if kind == ProviderKind::Ollama { Reply::lines(body) } else { Reply::events(body) };
        let error = failed(kind, reply).await;
        assert_eq!(error.class, ErrorClass::Server, "{body}: {error}");
        assert!(error.message.contains("cannot be read"), "{body}: {error}");
    }
    for body in ["{}", "[]", "nothing", "{\"choices\":[]}"] {
        let error = failed(ProviderKind::Openai, Reply::json(200, body)).await;
        assert_eq!(error.class, ErrorClass::Server, "{body}: {error}");
    }
}

#[tokio::test]
async fn an_empty_answer_is_no_fault_of_its_provider() {
    for (kind, path) in [
        (ProviderKind::Openai, "openai/empty.sse"),
        (ProviderKind::Anthropic, "anthropic/empty.sse"),
        (ProviderKind::Ollama, "ollama/empty.ndjson"),
    ] {
        let answer = crate::answers::answer(kind, path).await;
        assert_eq!((answer.text.trim(), answer.calls.len(), answer.finish), ("", 0, Finish::Stop), "{path}");
    }
    for kind in [ProviderKind::Openai, ProviderKind::Anthropic, ProviderKind::Ollama] {
        let error = failed(kind, Reply::new(200, "", "")).await;
        assert_eq!(error.class, ErrorClass::Network, "no byte at all: {error}");
    }
}

fn text_event(bytes: usize) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}},\"finish_reason\":null}}]}}\n\n",
        "x".repeat(bytes)
    )
}

/// The connection to a server that sends forever is closed at a limit.
async fn refused(reply: Reply) -> ProviderError {
    let mut server = Server::start(vec![reply.ends(BodyEnd::Endless)]).await;
    let error = ask(&build(entry(ProviderKind::Openai, &server.url))).await.0.expect_err("too large");
    server.gone().await;
    assert_eq!(error.class, ErrorClass::Server, "{error}");
    error
}

// Promises: AGENT-12
#[tokio::test]
async fn fifty_megabytes_are_not_taken() {
    let text = refused(Reply::events(text_event(1000))).await;
    assert!(text.message.contains(&limits::MAX_TEXT_BYTES.to_string()), "{text}");
    let event = refused(Reply::events("x".repeat(10_000))).await;
    assert!(event.message.contains(&limits::MAX_EVENT_BYTES.to_string()), "{event}");
    // Nothing of this would be stored: only the number of bytes is too large.
    let noise = refused(Reply::events(format!(": {}\n\n", "x".repeat(60_000)))).await;
    assert!(noise.message.contains(&limits::MAX_ANSWER_BYTES.to_string()), "{noise}");
    let document = refused(Reply::json(200, " ".repeat(60_000))).await;
    assert!(document.message.contains(&limits::MAX_ANSWER_BYTES.to_string()), "{document}");
}

#[tokio::test]
async fn the_arguments_of_a_call_are_bounded() {
    let piece = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{}\"}}}}]}}}}]}}\n\n",
        "x".repeat(5000)
    );
    let error = refused(Reply::events(piece)).await;
    assert!(error.message.contains(&limits::MAX_ARGUMENTS_BYTES.to_string()), "{error}");
}

#[tokio::test]
async fn the_number_of_calls_is_bounded() {
    let mut body = String::new();
    for index in 0..=limits::MAX_CALLS {
        // Far apart: the numbers are not indices of a list.
        let index = index * 1_000_000_007;
        body.push_str(&format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"function\":{{\"name\":\"weather\",\"arguments\":\"\"}}}}]}}}}]}}\n\n"
        ));
    }
    let error = failed(ProviderKind::Openai, Reply::events(body)).await;
    assert!(error.message.contains("more than 128 calls"), "{error}");
}

#[tokio::test]
async fn an_endless_error_is_read_in_part() {
    let mut server =
        Server::start(vec![Reply::new(500, "text/plain", "x".repeat(60_000)).ends(BodyEnd::Endless)]).await;
    let error = ask(&build(entry(ProviderKind::Openai, &server.url))).await.0.expect_err("an error");
    assert_eq!((error.class, error.status), (ErrorClass::Server, Some(500)));
    server.gone().await;
}

// Promises: AGENT-12
#[tokio::test]
async fn deep_json_is_refused_without_a_crash() {
    let deep = format!("data: {}\n\n", "[".repeat(500_000));
    let error = failed(ProviderKind::Openai, Reply::events(deep)).await;
    assert_eq!(error.class, ErrorClass::Server, "{error}");
}
