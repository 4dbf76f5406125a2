//! MCP servers that are reached over the network: the transport of 2024-11-05, outages.

use std::path::{Path, PathBuf};

use talon_tests::{Builder, ServerScript, Supervisor, repository, skip};

/// The Python that has the official library, if it is installed.
fn official_python() -> PathBuf {
    talon_tests::target().join("mcp/python/bin/python")
}

fn is_missing(test: &str, python: &Path) -> bool {
    let missing = !python.exists();
    if missing {
        let python = python.display();
        skip(test, &format!("there is no {python} (tests/scripts/deps.sh test installs it)"));
    }
    missing
}

/// A server outside of any jail. It ends with its standard input.
struct Remote(ServerScript);

impl Remote {
    fn start(python: &Path, script: &str, args: &[&str]) -> Self {
        let source = repository().join("tests/mcp").join(script);
        Self(ServerScript::start(python, &source, args))
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.0.port(0))
    }
}

async fn plugin(url: &str, more: &str) -> Supervisor {
    Builder::new().url("mcp", url, more).start().await
}

// Promises: MCP-29
#[tokio::test]
async fn a_server_of_the_transport_of_2024_is_reached() {
    let python = official_python();
    if is_missing("a_server_of_the_transport_of_2024_is_reached", &python) {
        return;
    }
    let remote = Remote::start(&python, "sse_server.py", &[]);
    let supervisor = plugin(&remote.url("/sse"), "").await;
    let client = &supervisor.client;
    let plugin = client.plugin("mcp").await;
    assert_eq!(plugin.state, "ready", "{}\n{:#?}", plugin.reason, client.logs("mcp").await);
    for text in ["one", "two"] {
        let answer = client.call("mcp", "echo", &[("text", text)]).await;
        assert!(answer.error.is_empty() && answer.content.contains(text), "{answer:?}");
    }
    // When its stream ends, the connection is over, and it is made again.
    drop(remote);
    client.wait_for("mcp", "noticed", |p| p.state != "ready").await;
    supervisor.stop().await;
}

// Promises: LIFE-33
#[tokio::test]
async fn a_server_that_is_down_at_the_start_is_waited_for() {
    let python = Path::new("/usr/bin/python3");
    if is_missing("a_server_that_is_down_at_the_start_is_waited_for", python) {
        return;
    }
    // A port that was free a moment ago; nobody listens on it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let url = format!("http://127.0.0.1:{port}/mcp");
    // One death is one too many, but an outage is none.
    let more = "max_restarts: 1\nbackoff_initial: 10ms";
    let supervisor = Builder::new().url("mcp", &url, more).without_waiting().start().await;
    let client = &supervisor.client;
    let waiting = |p: &talon_proto::host::Plugin| {
        p.state == "backoff" && p.instances.iter().all(|instance| instance.generation >= 3)
    };
    let away = client.wait_for("mcp", "three failed starts", waiting).await;
    assert!(
        away.reason.contains("tried again in") && away.reason.contains("talon plugin start mcp"),
        "{}",
        away.reason
    );
    let answer = client.call("mcp", "echo", &[("text", "x")]).await;
    assert!(answer.error.contains("cannot connect"), "it is refused at once, with the reason: {answer:?}");
    let remote = Remote::start(python, "http_server.py", &["--port", &port.to_string()]);
    client.start("mcp").await.expect("it is tried at once");
    client.wait_state("mcp", "ready").await;
    drop(remote);
    supervisor.stop().await;
}

// Promises: MCP-29
#[tokio::test]
async fn messages_go_to_no_other_server_than_the_one_that_was_named() {
    let python = Path::new("/usr/bin/python3");
    if is_missing("messages_go_to_no_other_server_than_the_one_that_was_named", python) {
        return;
    }
    for (lie, says) in [("elsewhere", "not on its own host"), ("no-endpoint", "405")] {
        let remote = Remote::start(python, "sse_server.py", &["--lie", lie]);
        let supervisor = plugin(&remote.url("/sse"), "max_restarts: 0\nstart_timeout: 15s").await;
        let not_ready = |p: &talon_proto::host::Plugin| p.reason.contains(says);
        supervisor.client.wait_for("mcp", says, not_ready).await;
        supervisor.stop().await;
    }
}
