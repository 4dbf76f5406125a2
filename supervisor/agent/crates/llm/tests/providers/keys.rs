//! Keys are sent only to their provider, used in turn, and never shown.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use talon_llm::config::{Config, ProviderEntry, ProviderKind};
use talon_llm::model::ErrorClass;
use talon_llm::{KeySource, Secret};

use crate::server::{BodyEnd, Reply, Server};
use crate::{ask, build, build_with, entry, fixture, providers};

const FIRST: &str = "sk-first-0123456789";
const SECOND: &str = "sk-second-0123456789";

fn env(name: &str) -> Option<String> {
    match name {
        "FIRST" => Some(FIRST.to_owned()),
        "SECOND" => Some(format!(" {SECOND}\n")),
        _ => None,
    }
}

fn two_keys(url: &str) -> ProviderEntry {
    let api_keys = vec![KeySource::Env("SECOND".to_owned())];
    ProviderEntry { api_key_env: Some("FIRST".to_owned()), api_keys, ..entry(ProviderKind::Openai, url) }
}

fn fine() -> Reply {
    Reply::events(fixture("openai/text.sse"))
}

fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}

#[tokio::test]
async fn each_provider_gets_its_key_in_its_header() {
    for (kind, reply, header, value) in [
        (ProviderKind::Openai, fine(), "authorization", bearer(FIRST)),
        (
            ProviderKind::Anthropic,
            Reply::events(fixture("anthropic/text.sse")),
            "x-api-key",
            FIRST.to_owned(),
        ),
        (ProviderKind::Ollama, Reply::lines(fixture("ollama/text.ndjson")), "authorization", bearer(FIRST)),
    ] {
        let mut server = Server::start(vec![reply]).await;
        let entry = ProviderEntry { api_key_env: Some("FIRST".to_owned()), ..entry(kind, &server.url) };
        ask(&build_with(entry, &env)).await.0.expect("an answer");
        assert_eq!(server.asked().await.header(header), Some(value.as_str()));
    }
}

#[tokio::test]
async fn without_a_key_none_is_sent() {
    let mut server = Server::start(vec![fine()]).await;
    ask(&build(entry(ProviderKind::Openai, &server.url))).await.0.expect("an answer");
    let asked = server.asked().await;
    assert_eq!((asked.header("authorization"), asked.header("x-api-key")), (None, None));
}

#[tokio::test]
async fn keys_are_used_in_turn() {
    let mut server = Server::start(vec![fine()]).await;
    let provider = build_with(two_keys(&server.url), &env);
    for key in [FIRST, SECOND, FIRST] {
        ask(&provider).await.0.expect("an answer");
        assert_eq!(server.asked().await.header("authorization"), Some(bearer(key).as_str()));
    }
}

#[tokio::test]
async fn a_limited_key_gives_way_to_the_next() {
    let limited = Reply::json(429, fixture("errors/openai-429-rate.json")).header("retry-after", "3000");
    let mut server = Server::start(vec![limited, fine()]).await;
    let provider = build_with(two_keys(&server.url), &env);
    ask(&provider).await.0.expect("the second key answers");
    ask(&provider).await.0.expect("the second key answers");
    for key in [FIRST, SECOND, SECOND] {
        assert_eq!(server.asked().await.header("authorization"), Some(bearer(key).as_str()));
    }
}

#[tokio::test]
async fn when_all_keys_rest_nobody_is_asked() {
    let limited = Reply::json(429, fixture("errors/openai-429-rate.json")).header("retry-after", "3000");
    let mut server = Server::start(vec![limited]).await;
    let provider = build_with(two_keys(&server.url), &env);
    let first = ask(&provider).await.0.expect_err("both are limited");
    assert_eq!((first.class, first.status), (ErrorClass::RateLimit, Some(429)));
    assert_eq!(server.unseen(), 2, "each key once");
    let second = ask(&provider).await.0.expect_err("both rest");
    assert_eq!((second.class, second.status), (ErrorClass::RateLimit, None));
    assert!(second.retry_after.is_some_and(|rest| rest <= Duration::from_secs(3000)), "{second:?}");
    assert!(second.message.contains("was not asked"), "{second}");
    assert_eq!(server.unseen(), 0);
}

#[tokio::test]
async fn a_refused_key_stays_out_and_is_named_by_its_place() {
    let refused = Reply::json(401, fixture("errors/openai-401-key.json"));
    let mut server = Server::start(vec![refused]).await;
    let entry =
        ProviderEntry { api_key_env: Some("FIRST".to_owned()), ..entry(ProviderKind::Openai, &server.url) };
    let provider = build_with(entry, &env);
    assert_eq!(provider.permanent_refusal(), None);
    let error = ask(&provider).await.0.expect_err("refused");
    assert_eq!(error.class, ErrorClass::Auth);
    assert!(error.message.contains("the key in FIRST"), "{error}");
    let why = provider.permanent_refusal().expect("it has no other key");
    assert!(why.starts_with("all its keys were refused (FIRST): "), "{why}");
    assert_eq!(server.unseen(), 1);
    let error = ask(&provider).await.0.expect_err("still refused");
    assert_eq!((error.class, error.status), (ErrorClass::Auth, None));
    assert!(error.message.contains("reload"), "{error}");
    assert_eq!(server.unseen(), 0, "it was not asked again");
}

#[tokio::test]
async fn what_a_key_may_not_do_does_not_put_it_out() {
    let denied = Reply::json(403, fixture("errors/anthropic-403-permission.json"));
    let mut server = Server::start(vec![denied, fine()]).await;
    let provider = build_with(two_keys(&server.url), &env);
    let error = ask(&provider).await.0.expect_err("not allowed");
    assert_eq!(error.class, ErrorClass::Auth);
    assert_eq!(server.unseen(), 1, "another key would hide it");
    for _ in 0..2 {
        ask(&provider).await.0.expect("both keys are used on");
    }
}

#[tokio::test]
async fn after_the_first_word_no_other_key_is_tried() {
    let broken = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Well\"}}]}\n\n\
                  data: {\"error\":{\"message\":\"slow down\",\"code\":429}}\n\n";
    let mut server = Server::start(vec![Reply::events(broken), fine()]).await;
    let (answer, chunks) = ask(&build_with(two_keys(&server.url), &env)).await;
    assert_eq!(answer.expect_err("limited").class, ErrorClass::RateLimit);
    assert_eq!((chunks.len(), server.unseen()), (1, 1));
}

// Promises: AGENT-15
#[tokio::test]
async fn a_key_that_is_repeated_to_us_is_not_repeated_by_us() {
    let echo = format!("{{\"error\":{{\"message\":\"bad key {FIRST} and header hunter2-hunter2\"}}}}");
    let header = [("x-gateway".to_owned(), Secret::new("hunter2-hunter2"))];
    for reply in [
        Reply::json(401, echo.clone()),
        Reply::json(200, echo.clone()),
        Reply::events(format!("data: {echo}\n\n")),
        Reply::json(307, "").header("location", &format!("http://x/?key={FIRST}")),
        Reply::events(format!("data: {FIRST}\n\n")),
        Reply::new(500, "text/plain", FIRST).ends(BodyEnd::Whole),
    ] {
        let server = Server::start(vec![reply]).await;
        let entry = ProviderEntry {
            api_key_env: Some("FIRST".to_owned()),
            headers: header.clone().into(),
            ..entry(ProviderKind::Openai, &server.url)
        };
        let shown = format!("{entry:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
        let error = ask(&build_with(entry, &env)).await.0.expect_err("an error");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("0123456789") && !shown.contains("hunter2"), "{shown}");
    }
}

#[tokio::test]
async fn headers_of_the_entry_are_sent_and_win() {
    let mut server = Server::start(vec![Reply::events(fixture("anthropic/text.sse"))]).await;
    let headers = [("anthropic-version", "2099-01-01"), ("x-team", "talon")];
    let headers = headers.map(|(name, value)| (name.to_owned(), Secret::new(value))).into();
    ask(&build(ProviderEntry { headers, ..entry(ProviderKind::Anthropic, &server.url) }))
        .await
        .0
        .expect("an answer");
    let asked = server.asked().await;
    assert_eq!(asked.header("anthropic-version"), Some("2099-01-01"));
    assert_eq!(asked.header("x-team"), Some("talon"));
}

#[tokio::test]
async fn keys_come_from_a_file_that_others_cannot_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("keys");
    std::fs::write(&path, format!("{FIRST}\n{SECOND}\n")).expect("written");
    let mut server = Server::start(vec![fine()]).await;
    let with_file =
        || ProviderEntry { api_key_file: Some(path.clone()), ..entry(ProviderKind::Openai, &server.url) };
    let mode = |mode| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("set");
    };
    mode(0o644);
    let made = providers(&Config([("local".to_owned(), with_file())].into()), &|_| None);
    assert!(made.ready.is_empty());
    assert!(made.problems[0].message.contains("chmod o="), "{:?}", made.problems);
    mode(0o600);
    let provider = build(with_file());
    for key in [FIRST, SECOND] {
        ask(&provider).await.0.expect("an answer");
        assert_eq!(server.asked().await.header("authorization"), Some(bearer(key).as_str()));
    }
}

#[tokio::test]
async fn a_probe_tells_what_a_question_would() {
    for (kind, path) in [
        (ProviderKind::Openai, "/models"),
        (ProviderKind::Anthropic, "/v1/models?limit=1"),
        (ProviderKind::Ollama, "/api/tags"),
    ] {
        let mut server = Server::start(vec![Reply::json(200, "{}")]).await;
        build(entry(kind, &server.url)).probe().await.expect("reached");
        assert_eq!(server.asked().await.line(), format!("GET {path} HTTP/1.1"));
    }
    for (reply, class) in [
        (Reply::json(401, fixture("errors/openai-401-key.json")), ErrorClass::Auth),
        (Reply::json(503, fixture("errors/openai-503-overloaded.json")), ErrorClass::Server),
        (Reply::new(200, "text/html", "<html></html>"), ErrorClass::Server),
    ] {
        let server = Server::start(vec![reply]).await;
        let error = build(entry(ProviderKind::Openai, &server.url)).probe().await.expect_err("not well");
        assert_eq!(error.class, class, "{error}");
    }
}

#[tokio::test]
async fn a_refused_key_beside_a_limited_one_does_not_decide() {
    let limited = || Reply::json(429, fixture("errors/openai-429-rate.json"));
    let refused = || Reply::json(401, fixture("errors/openai-401-key.json"));
    for replies in [vec![limited(), refused()], vec![refused(), limited()]] {
        let server = Server::start(replies).await;
        let error = ask(&build_with(two_keys(&server.url), &env)).await.0.expect_err("no key left");
        assert_eq!(error.class, ErrorClass::RateLimit, "{error}");
    }
}
