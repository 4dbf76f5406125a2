//! Connections, proxies, and cancellation.

use std::sync::Arc;

use talon_llm::config::{Config, ProviderEntry, ProviderKind, TimeSpan};
use talon_llm::model::{Chunk, ErrorClass};
use talon_llm::{Provider, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::server::{BodyEnd, Reply, Server};
use crate::{ask, build, build_with, entry, fixture, providers, question};

// Promises: AGENT-14
#[tokio::test]
async fn dropping_a_question_closes_its_connection() {
    let begun = Reply::events(fixture("openai/half.sse")).ends(BodyEnd::Hang);
    for (reply, waits_for_a_word) in [(begun, true), (Reply::mute(), false)] {
        let mut server = Server::start(vec![reply]).await;
        let provider = build(entry(ProviderKind::Openai, &server.url));
        let (first, heard) = oneshot::channel();
        let asking = tokio::spawn(async move {
            let mut first = Some(first);
            let mut hear = |_: Chunk| {
                if let Some(first) = first.take() {
                    first.send(()).expect("the test waits");
                }
            };
            provider.ask(&question("?"), &mut hear).await
        });
        server.asked().await;
        if waits_for_a_word {
            heard.await.expect("a word");
        }
        asking.abort();
        server.gone().await;
    }
}

#[tokio::test]
async fn a_dead_address_is_a_network_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    for url in [format!("http://127.0.0.1:{port}"), "http://nobody.invalid".to_owned()] {
        let error = ask(&build(entry(ProviderKind::Openai, &url))).await.0.expect_err("nobody there");
        assert_eq!((error.class, error.status), (ErrorClass::Network, None));
        assert!(error.message.contains("could not be reached"), "{error}");
        let error = build(entry(ProviderKind::Ollama, &url)).probe().await.expect_err("nobody there");
        assert_eq!(error.class, ErrorClass::Network, "{error}");
    }
}

#[tokio::test]
async fn a_server_that_closes_at_once_is_a_network_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let closing = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    let error = ask(&build(entry(ProviderKind::Openai, &url))).await.0.expect_err("closed");
    assert_eq!(error.class, ErrorClass::Network, "{error}");
    closing.abort();
}

#[tokio::test]
async fn what_does_not_take_connections_is_a_timeout() {
    // The TLS handshake is part of connecting, and this server does not answer it.
    let server = Server::start(vec![Reply::mute()]).await;
    let mut entry = entry(ProviderKind::Openai, &format!("https://127.0.0.1:{}", server.port));
    entry.timeouts.connect = TimeSpan::from_millis(300);
    let error = ask(&build(entry)).await.0.expect_err("no connection");
    assert_eq!(error.class, ErrorClass::Timeout);
    assert!(error.message.contains("timeouts.connect"), "{error}");
}

/// A proxy that answers every request itself.
async fn through(entry: ProviderEntry, env: &dyn Fn(&str) -> Option<String>, proxy: &mut Server) -> String {
    ask(&build_with(entry, env)).await.0.expect("the proxy answers");
    proxy.asked().await.line().to_owned()
}

fn fine() -> Reply {
    Reply::events(fixture("openai/text.sse"))
}

#[tokio::test]
async fn the_environment_names_a_proxy() {
    let mut proxy = Server::start(vec![fine()]).await;
    let url = proxy.url.clone();
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let env = |asked: &str| (asked == name).then(|| url.clone());
        let line = through(entry(ProviderKind::Openai, "http://llm.invalid/v1"), &env, &mut proxy).await;
        assert_eq!(line, "POST http://llm.invalid/v1/chat/completions HTTP/1.1", "{name}");
    }
}

#[tokio::test]
async fn no_proxy_holds_and_loopback_is_always_direct() {
    let mut proxy = Server::start(vec![fine()]).await;
    let url = proxy.url.clone();
    let env = |name: &str| match name {
        "HTTP_PROXY" => Some(url.clone()),
        "NO_PROXY" => Some("other.example,.invalid".to_owned()),
        _ => None,
    };
    let error = ask(&build_with(entry(ProviderKind::Openai, "http://llm.invalid/v1"), &env)).await.0;
    assert_eq!(error.expect_err("there is no such host").class, ErrorClass::Network);
    let mut server = Server::start(vec![fine()]).await;
    ask(&build_with(entry(ProviderKind::Openai, &server.url), &env)).await.0.expect("an answer");
    assert_eq!(server.asked().await.line(), "POST /chat/completions HTTP/1.1");
    assert_eq!(proxy.unseen(), 0);
}

#[tokio::test]
async fn an_entry_has_a_proxy_of_its_own_or_none() {
    let mut proxy = Server::start(vec![fine()]).await;
    let own = proxy.url.replace("http://", "http://user:hunter2@");
    let with = |url: &str| ProviderEntry {
        proxy: Some(Secret::new(url)),
        ..entry(ProviderKind::Openai, "http://llm.invalid/v1")
    };
    let dead = |name: &str| (name == "HTTP_PROXY").then(|| "http://127.0.0.1:1".to_owned());
    ask(&build_with(with(&own), &dead)).await.0.expect("the proxy answers");
    let asked = proxy.asked().await;
    assert_eq!(asked.header("proxy-authorization"), Some("Basic dXNlcjpodW50ZXIy"));
    let url = proxy.url.clone();
    let env = |name: &str| (name == "HTTP_PROXY").then(|| url.clone());
    let error = ask(&build_with(with("direct"), &env)).await.0.expect_err("there is no such host");
    assert_eq!(error.class, ErrorClass::Network);
    assert_eq!(proxy.unseen(), 0);
}

#[tokio::test]
async fn a_bad_proxy_is_refused_without_its_password() {
    for url in ["socks9://user:hunter2@x", "http://user:hunter2@", "::hunter2"] {
        let entry = ProviderEntry {
            proxy: Some(Secret::new(url)),
            ..entry(ProviderKind::Openai, "http://llm.invalid/v1")
        };
        let made = providers(&Config([("local".to_owned(), entry)].into()), &|_| None);
        assert!(made.ready.is_empty(), "{url}");
        assert!(!format!("{:?}", made.problems).contains("hunter2"), "{:?}", made.problems);
    }
}

#[tokio::test]
async fn tls_goes_through_a_tunnel_and_the_key_does_not_reach_the_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://user:hunter2@{}", listener.local_addr().expect("bound"));
    let proxy = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut read = Vec::new();
        while !read.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            assert!(stream.read_buf(&mut read).await.expect("bytes") > 0);
        }
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await.expect("written");
        String::from_utf8(read).expect("text")
    });
    let env = |name: &str| match name {
        "HTTPS_PROXY" => Some(url.clone()),
        "KEY" => Some("sk-0123456789".to_owned()),
        _ => None,
    };
    let entry = ProviderEntry {
        api_key_env: Some("KEY".to_owned()),
        ..entry(ProviderKind::Openai, "https://llm.invalid/v1")
    };
    let error = ask(&build_with(entry, &env)).await.0.expect_err("the proxy refuses");
    assert_eq!(error.class, ErrorClass::Network, "{error}");
    assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    let asked = proxy.await.expect("it was asked");
    assert!(asked.starts_with("CONNECT llm.invalid:443 HTTP/1.1\r\n"), "{asked}");
    assert!(!asked.contains("sk-0123456789"), "{asked}");
}

#[tokio::test]
async fn one_provider_answers_many_questions_at_once() {
    let server = Server::start(vec![fine()]).await;
    let provider: Arc<dyn Provider> = build(entry(ProviderKind::Openai, &server.url));
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let provider = Arc::clone(&provider);
            tokio::spawn(async move { ask(&provider).await.0 })
        })
        .collect();
    for answer in asking {
        assert_eq!(answer.await.expect("no panic").expect("an answer").text, "Grüße aus Zürich 😀.");
    }
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_whole_answer() {
    for (kind, path) in [
        (ProviderKind::Openai, "openai/text.sse"),
        (ProviderKind::Anthropic, "anthropic/text.sse"),
        (ProviderKind::Ollama, "ollama/text.ndjson"),
    ] {
        let reply = if kind == ProviderKind::Ollama { Reply::lines } else { Reply::events };
        let mut server = Server::start(vec![reply(fixture(path).into_bytes())]).await;
        let provider = build(entry(kind, &server.url));
        // On a busy machine the end of a body may arrive too late once.
        loop {
            ask(&provider).await.0.expect("an answer");
            if server.asked().await.again {
                break;
            }
        }
    }
}
