//! The binary under the SDK's mock host, and by hand.

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

use serde_json::json;
use talon_sdk::testing::Host;

const HELLO: &str = env!("CARGO_BIN_EXE_hello");

// Promises: EX-1
#[tokio::test]
async fn it_greets() {
    let host = Host::launch(HELLO).await.expect("launches");
    let answer = host.call("greet", json!({"name": "Ada"})).await.expect("answers");
    assert_eq!((answer.content.as_str(), answer.error), ("Hello, Ada!", None));
    assert!(host.shutdown().await.expect("ends").success());
}

#[tokio::test]
async fn it_asks_for_a_name() {
    let host = Host::launch(HELLO).await.expect("launches");
    for (args, says) in [
        (json!({"name": " "}), "greet whom? give a name"),
        (json!({}), "argument `name` is missing"),
        (json!({"name": "Ada", "loud": true}), "unknown argument `loud`; greet takes name"),
    ] {
        let answer = host.call("greet", args).await.expect("answers");
        assert_eq!(answer.error.as_deref(), Some(says));
    }
}

// Promises: EX-1
#[tokio::test]
async fn it_takes_no_config() {
    let error = Host::builder(HELLO).config(json!({"loud": true})).launch().await.expect_err("refused");
    assert_eq!(error.to_string(), "Init: this plugin takes no config; remove `loud`");
}

// Promises: SDK-10
#[test]
fn run_by_hand_it_says_what_to_do() {
    let output = Command::new(HELLO).output().expect("runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("talon exec") && said.contains("ACTION [key=value …]"), "{said}");
    assert!(said.contains("Its actions: greet"), "{said}");
}

#[test]
fn a_directory_too_deep_for_a_socket_is_named() {
    let output = Command::new(HELLO)
        .env("TALON_PLUGIN_MAGIC_COOKIE", "d3a7c1f0-talon-plugin")
        .env("PLUGIN_UNIX_SOCKET_DIR", format!("/tmp/{}", "d".repeat(120)))
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "no handshake without a socket");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("at most 107"), "{said}");
}

// Promises: SDK-12
#[test]
fn it_serves_on_a_socket_that_the_host_hands_over() {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join("handed.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    let mut child = Command::new(HELLO)
        .env("TALON_PLUGIN_MAGIC_COOKIE", "d3a7c1f0-talon-plugin")
        .env("TALON_LISTEN_FD", "0")
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("reads");
    assert_eq!(line, format!("1|1|unix|{}|grpc\n", path.display()));
    UnixStream::connect(&path).expect("somebody listens");
    child.kill().expect("killed");
    child.wait().expect("reaped");
    UnixStream::connect(&path).expect_err("nobody listens any more");
}
