//! The log at the most verbose level.

use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use talon_llm::Secret;
use talon_llm::config::{ProviderEntry, ProviderKind};

use crate::server::{Reply, Server};
use crate::{ask, build_with, entry, fixture};

/// Used by one test only, since the log belongs to the whole process.
const KEY: &str = "sk-never-in-a-log-7351";
const HEADER: &str = "hunter-never-in-a-log-7352";
const PASSWORD: &str = "proxy-never-in-a-log-7353";

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// Promises: AGENT-15
#[tokio::test]
async fn no_secret_is_in_any_log() {
    let log = Log::default();
    let writer = log.clone();
    // Also receives what libraries log through the older facade.
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .init();
    let server = Server::start(vec![
        Reply::events(fixture("openai/text.sse")),
        Reply::json(401, format!("{{\"error\":\"bad {KEY}\"}}")),
    ])
    .await;
    let entry = ProviderEntry {
        api_key_env: Some("KEY".to_owned()),
        headers: [("x-gateway".to_owned(), Secret::new(HEADER))].into(),
        proxy: Some(Secret::new(server.url.replace("http://", &format!("http://user:{PASSWORD}@")))),
        ..entry(ProviderKind::Openai, "http://llm.invalid/v1")
    };
    let provider = build_with(entry, &|name| (name == "KEY").then(|| KEY.to_owned()));
    ask(&provider).await.0.expect("an answer");
    ask(&provider).await.0.expect_err("refused");
    let logged = String::from_utf8(log.0.lock().clone()).expect("text");
    assert!(logged.contains("answered") && logged.contains("failed"), "{logged}");
    for secret in [KEY, HEADER, PASSWORD] {
        assert!(!logged.contains(secret), "{secret}: {logged}");
    }
}
