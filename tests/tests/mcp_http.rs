//! `talon mcp --http`: who is served over HTTP, and who is not.

use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;

use serde_json::{Value, json};
use talon_tests::{Builder, McpOverHttp, Supervisor, program};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

/// A running `talon mcp --http`, and requests to it.
struct Served(McpOverHttp);

/// An answer: its status, its session, and the message in it.
struct Answer {
    status: u16,
    session: Option<String>,
    message: Value,
}

impl Served {
    async fn start(supervisor: &Supervisor) -> Self {
        let served = McpOverHttp::start(supervisor).await;
        let file = supervisor.config().with_file_name("token");
        assert_eq!(std::fs::metadata(file).expect("it was made").mode() & 0o777, 0o600);
        Self(served)
    }

    /// Sends one message with these headers, in addition to what each request has.
    async fn post(&self, path: &str, headers: &[(&str, &str)], message: &Value) -> Answer {
        let body = message.to_string();
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Connection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        let host = format!("127.0.0.1:{}", self.0.port);
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: {host}\r\n");
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(&host).await.expect("it listens");
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).await.expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).await.expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ").map(str::to_owned));
        // JSON alone, or in an event, with or without chunks around it.
        let mut messages = body.lines().filter_map(|line| {
            serde_json::from_str::<Value>(line.strip_prefix("data: ").unwrap_or(line)).ok()
        });
        let message = messages.rfind(|message: &Value| message.is_object()).unwrap_or_default();
        Answer { status, session, message }
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.0.token)
    }
}

async fn supervisor() -> Supervisor {
    Builder::new().plugin("kit", &program("talon-test-tools"), &[], "").start().await
}

fn initialize() -> Value {
    let about = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about})
}

// Promises: MCP-31
#[tokio::test]
async fn a_client_with_the_token_lists_and_calls() {
    let supervisor = supervisor().await;
    let served = Served::start(&supervisor).await;
    let bearer = served.bearer();
    let begun = served.post("/mcp", &[("Authorization", &bearer)], &initialize()).await;
    assert_eq!((begun.status, &begun.message["result"]["serverInfo"]["name"]), (200, &json!("talon")));
    let session = begun.session.expect("a session");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Mcp-Session-Id", &session),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let noted = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(served.post("/mcp", &headers, &noted).await.status, 202);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "kit__echo", "arguments": {"text": "by HTTP"}}});
    let answer = served.post("/mcp", &headers, &call).await;
    assert!(
        answer.message["result"]["content"][0]["text"].as_str().is_some_and(|text| text.contains("by HTTP")),
        "{}",
        answer.message
    );

    // From 2026-07-28 on there are no sessions.
    let meta = talon_tests::meta(json!({}));
    let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": meta}});
    let headers = [
        ("Authorization", bearer.as_str()),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ];
    let answer = served.post("/mcp", &headers, &list).await;
    let tools = answer.message["result"]["tools"].as_array().cloned().unwrap_or_default();
    assert!(tools.iter().any(|tool| tool["name"] == "kit__echo"), "{}", answer.message);
    supervisor.stop().await;
}

// Promises: MCP-31
#[tokio::test]
async fn who_has_no_token_or_comes_by_another_name_is_refused() {
    let supervisor = supervisor().await;
    let served = Served::start(&supervisor).await;
    let bearer = served.bearer();
    let with =
        async |path: &str, headers: &[(&str, &str)]| served.post(path, headers, &initialize()).await.status;
    let authorization = ("Authorization", bearer.as_str());
    for wrong in [
        &[][..],
        &[("Authorization", "Bearer x")],
        &[("Authorization", &served.0.token)],
        &[("Authorization", "Basic x")],
    ] {
        assert_eq!(with("/mcp", wrong).await, 401, "{wrong:?}");
    }
    // A web page whose name was bound anew to this machine sends its own name, and its own origin.
    assert_eq!(with("/mcp", &[authorization, ("Host", "evil.example")]).await, 403);
    assert_eq!(with("/mcp", &[authorization, ("Origin", "https://evil.example")]).await, 403);
    assert_eq!(with("/mcp", &[authorization, ("Origin", "null")]).await, 403);
    assert_eq!(with("/mcp", &[authorization, ("Origin", "http://localhost:3000")]).await, 200);
    assert_eq!(with("/other", &[authorization]).await, 404);
    supervisor.stop().await;
}

// Promises: MCP-31
#[tokio::test]
async fn sessions_are_bounded() {
    let supervisor = supervisor().await;
    let served = Served::start(&supervisor).await;
    let bearer = served.bearer();
    let mut refused = None;
    for _ in 0..300 {
        let answer = served.post("/mcp", &[("Authorization", &bearer)], &initialize()).await;
        if answer.status != 200 {
            refused = Some(answer.status);
            break;
        }
    }
    assert!(refused.is_some_and(|status| status >= 500), "{refused:?}");
    supervisor.stop().await;
}

#[tokio::test]
async fn without_a_token_or_on_an_open_address_it_does_not_start() {
    let supervisor = supervisor().await;
    for (args, token, says) in [
        (["mcp", "--http", "127.0.0.1:0"], "", "--token-file"),
        (["mcp", "--http", "127.0.0.1:0"], "short", "fewer than 32"),
        (["mcp", "--http", "0.0.0.0:0"], "0123456789abcdef0123456789abcdef", "--allowed-host"),
    ] {
        let output = Command::new(program("talon"))
            .arg("--socket")
            .arg(supervisor.socket())
            .args(args)
            .env("TALON_MCP_TOKEN", token)
            .stdin(Stdio::null())
            .output()
            .await
            .expect("talon starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(says), "{args:?}: {said}");
    }
    supervisor.stop().await;
}
