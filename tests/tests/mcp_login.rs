//! `talon mcp login`: OAuth for remote MCP servers, against an imitation of an authorization server, by the
//! book and with its lies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use talon_tests::{Builder, ServerScript, Supervisor, program, repository, skip};

const PYTHON: &str = "/usr/bin/python3";

fn is_missing(test: &str) -> bool {
    let missing = !Path::new(PYTHON).exists();
    if missing {
        skip(test, &format!("there is no {PYTHON} (tests/scripts/deps.sh test installs python3)"));
    }
    missing
}

/// An MCP server and its authorization server. They end with their standard input.
struct Servers {
    /// Held until the end.
    _script: ServerScript,
    mcp: u16,
    authorization: u16,
}

impl Servers {
    fn start(args: &[&str]) -> Self {
        let source = repository().join("tests/mcp/oauth_server.py");
        let script = ServerScript::start(PYTHON, &source, args);
        Self { mcp: script.port(0), authorization: script.port(1), _script: script }
    }

    async fn plugin(&self) -> Supervisor {
        let url = format!("http://127.0.0.1:{}/mcp", self.mcp);
        let allow = [self.mcp, self.authorization].map(|port| format!("\"127.0.0.1:{port}\"")).join(", ");
        let more = format!("sandbox: {{ allow: [{allow}] }}\nmax_restarts: 0\nstart_timeout: 15s");
        Builder::new().url("issues", &url, &more).start().await
    }
}

/// The answer's `Location`, as a browser follows it.
fn get(url: &str) -> String {
    let answer = whole(url);
    let location = answer.lines().find_map(|line| line.strip_prefix("Location: "));
    location.unwrap_or_default().trim().to_owned()
}

/// The whole answer.
fn whole(url: &str) -> String {
    let rest = url.strip_prefix("http://").expect("http");
    let (place, path) = rest.split_once('/').expect("a path");
    let mut stream = TcpStream::connect(place).expect("it listens");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

/// Runs the login as a person does, who opens the address in a browser; its end, and what it said.
fn log_in(supervisor: &Supervisor, args: &[&str]) -> (ExitStatus, String) {
    let mut child = Command::new(program("talon"))
        .args(["--config", supervisor.config().to_str().expect("text")])
        .args(["--socket", supervisor.socket().to_str().expect("text")])
        .args(["mcp", "login", "issues"])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("talon starts");
    let mut said = String::new();
    let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
    loop {
        let mut line = String::new();
        if errors.read_line(&mut line).expect("text") == 0 {
            break;
        }
        said += &line;
        if line.contains("/authorize?") {
            let back = get(line.trim());
            assert!(get(&back).is_empty(), "it says that the window may be closed");
        }
        // On another device: the code is typed into the page.
        if line.contains("/activate") && line.starts_with("http://127.0.0.1") {
            get(&format!("{}?user_code=WDJB-MJHT", line.trim()));
        }
    }
    let mut output = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut output).expect("text");
    (child.wait().expect("it is ours"), said + &output)
}

async fn tokens(supervisor: &Supervisor) -> u32 {
    let answer = supervisor.client.call("issues", "tokens", &[]).await;
    answer.content.parse().unwrap_or_else(|_| panic!("{answer:?}"))
}

// Promises: MCP-18
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_is_stored_renewed_and_removed() {
    if is_missing("a_login_is_stored_renewed_and_removed") {
        return;
    }
    // Each token is about to expire when it comes.
    let servers = Servers::start(&["--expires", "1"]);
    let supervisor = servers.plugin().await;
    let client = &supervisor.client;
    let plugin = client.wait_state("issues", "failed").await;
    assert!(plugin.reason.contains("talon mcp login issues"), "{}", plugin.reason);

    let (status, said) = tokio::task::block_in_place(|| log_in(&supervisor, &[]));
    assert!(status.success() && said.contains("stored the login"), "{said}");
    client.wait_state("issues", "ready").await;
    let first = tokens(&supervisor).await;
    let second = tokens(&supervisor).await;
    assert!(second > first, "a token that expires is renewed before the next request");

    // The renewed refresh token is the stored one: another process of the plugin uses it.
    client.reload_plugin("issues").await.expect("it is started anew");
    client.wait_state("issues", "ready").await;
    assert!(tokens(&supervisor).await > second);

    // No token stands where others look.
    let shown = supervisor.cli(&["plugin", "show", "issues"]).await;
    let logged = client.logs("issues").await.concat();
    for text in [String::from_utf8_lossy(&shown.stdout).into_owned(), logged, supervisor.log(), said] {
        assert!(!text.contains("refresh_token") && !text.contains("Bearer "), "{text}");
    }

    let (status, said) = tokio::task::block_in_place(|| log_in(&supervisor, &["--remove"]));
    assert!(status.success(), "{said}");
    let plugin = client.wait_state("issues", "failed").await;
    assert!(plugin.reason.contains("talon mcp login issues"), "{}", plugin.reason);
    supervisor.stop().await;
}

// Promises: MCP-18
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_withdrawn_is_renewed_once() {
    if is_missing("a_token_that_is_withdrawn_is_renewed_once") {
        return;
    }
    let servers = Servers::start(&[]);
    let supervisor = servers.plugin().await;
    let (status, said) = tokio::task::block_in_place(|| log_in(&supervisor, &[]));
    assert!(status.success(), "{said}");
    supervisor.client.wait_state("issues", "ready").await;
    assert_eq!(tokens(&supervisor).await, 1);
    assert_eq!(supervisor.client.call("issues", "withdraw", &[]).await.content, "withdrawn");
    assert_eq!(tokens(&supervisor).await, 2);
    supervisor.stop().await;
}

// Promises: MCP-19
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authorization_server_that_lies_gets_no_login() {
    if is_missing("an_authorization_server_that_lies_gets_no_login") {
        return;
    }
    for (lie, says) in [
        ("issuer", "says that it is the issuer"),
        ("redirected-metadata", "which is not followed"),
        ("foreign-metadata", "not on its own host"),
        ("other-resource", "could be used elsewhere"),
        ("no-pkce", "PKCE"),
        ("other-iss", "belongs to another login"),
    ] {
        let servers = Servers::start(&["--lie", lie]);
        let supervisor = servers.plugin().await;
        let (status, said) = tokio::task::block_in_place(|| log_in(&supervisor, &[]));
        assert!(!status.success() && said.contains(says), "{lie}: {said}");
        let stored = supervisor.cli(&["state", "list", "issues"]).await;
        assert!(!String::from_utf8_lossy(&stored.stdout).contains("talon.oauth"), "{stored:?}");
        supervisor.stop().await;
    }
}

// Promises: MCP-40
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_on_another_device_is_stored_and_withdrawn() {
    if is_missing("a_login_on_another_device_is_stored_and_withdrawn") {
        return;
    }
    for (lie, revoked, says) in
        [(None, true, "withdrew the login"), (Some("no-revocation"), false, "takes no tokens back")]
    {
        let lies: Vec<&str> = lie.into_iter().flat_map(|lie| ["--lie", lie]).collect();
        let servers = Servers::start(&lies);
        let supervisor = servers.plugin().await;
        let client = &supervisor.client;
        let (status, said) = tokio::task::block_in_place(|| log_in(&supervisor, &["--device"]));
        assert!(
            status.success() && said.contains("WDJB-MJHT") && said.contains("stored the login"),
            "{said}"
        );
        client.wait_state("issues", "ready").await;
        assert_eq!(tokens(&supervisor).await, 1);

        let config = supervisor.config().display().to_string();
        let output = supervisor.cli(&["--config", &config, "mcp", "logout", "issues"]).await;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains(says), "{output:?}");
        let seen = whole(&format!("http://127.0.0.1:{}/revoked", servers.authorization));
        assert_eq!(
            seen.contains(r#"{"hints": ["refresh_token", "access_token"], "left": 0}"#),
            revoked,
            "{seen}"
        );
        let stored = supervisor.cli(&["state", "list", "issues"]).await;
        assert!(!String::from_utf8_lossy(&stored.stdout).contains("talon.oauth"), "{stored:?}");
        client.wait_state("issues", "failed").await;
        let output = supervisor.cli(&["--config", &config, "mcp", "logout", "issues"]).await;
        assert!(!output.status.success(), "there is nothing to withdraw: {output:?}");
        supervisor.stop().await;
    }
}

// Promises: MCP-19
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lies_to_another_device_gets_no_login() {
    if is_missing("a_server_that_lies_to_another_device_gets_no_login") {
        return;
    }
    for (lie, says) in [
        ("verification-address", "is no address for a login"),
        ("user-code", "none that a person could type"),
        ("denied", "access_denied (they said no)"),
        ("no-device", "no login on another device"),
        ("issuer", "says that it is the issuer"),
    ] {
        let servers = Servers::start(&["--lie", lie]);
        let supervisor = servers.plugin().await;
        let (status, said) = tokio::task::block_in_place(|| log_in(&supervisor, &["--device"]));
        assert!(!status.success() && said.contains(says) && !said.contains('\u{1b}'), "{lie}: {said}");
        let stored = supervisor.cli(&["state", "list", "issues"]).await;
        assert!(!String::from_utf8_lossy(&stored.stdout).contains("talon.oauth"), "{stored:?}");
        supervisor.stop().await;
    }
}

// Promises: MCP-40
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_withdrawn_where_they_came_from_and_nowhere_else() {
    if is_missing("tokens_are_withdrawn_where_they_came_from_and_nowhere_else") {
        return;
    }
    let servers = Servers::start(&["--lie", "foreign-revocation"]);
    let supervisor = servers.plugin().await;
    let (status, said) = tokio::task::block_in_place(|| log_in(&supervisor, &[]));
    assert!(status.success(), "{said}");
    let config = supervisor.config().display().to_string();
    let output = supervisor.cli(&["--config", &config, "mcp", "logout", "issues"]).await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("not where they came from"), "{output:?}");
    assert!(said.contains("mcp login --remove"), "{said}");
    let stored = supervisor.cli(&["state", "list", "issues"]).await;
    assert!(String::from_utf8_lossy(&stored.stdout).contains("talon.oauth"), "it stays: {stored:?}");
    supervisor.stop().await;
}
