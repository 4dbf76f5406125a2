//! The binary under the SDK's mock host.

use serde_json::json;
use talon_sdk::testing::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mail");

#[tokio::test]
async fn it_is_a_sink_that_says_why_nothing_was_sent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let config = json!({
        "host": "127.0.0.1", "port": port, "tls": "none", "from": "talon@example.org", "to": ["ada@example.org"],
    });
    let host = Host::builder(PROGRAM).config(config).launch().await.expect("launches");
    let declared = host.capabilities().await.expect("it has some");
    assert_eq!(declared.actions[0].roles, ["notification_sink"]);
    let event = json!({"id": "01K1", "kind": "test", "severity": "info", "summary": "x", "time_unix_ms": 0});
    let answer = host.call("send", json!({"event": event, "attempt": 1})).await.expect("answers");
    let said = answer.structured.as_ref().expect("structured");
    assert_eq!(said["status"], "retry", "{answer:?}");
    let place = format!("cannot connect to 127.0.0.1:{port}");
    assert!(said["reason"].as_str().is_some_and(|reason| reason.starts_with(&place)), "{answer:?}");
    assert!(host.shutdown().await.expect("ends").success());
}

#[tokio::test]
async fn a_bad_config_is_refused_with_its_reason() {
    for (config, says) in [
        (json!({}), "config: host:"),
        (json!({"host": "mail.example.org", "to": ["a@example.org"]}), "config: from:"),
        (json!({"server": "x"}), "unknown field `server`"),
        (
            json!({"host": "mail.example.org", "tls": "none", "from": "a@example.org", "to": ["a@example.org"]}),
            "allow_plaintext",
        ),
    ] {
        let error = Host::builder(PROGRAM).config(config).launch().await.expect_err("refused").to_string();
        assert!(error.contains(says), "expected {says:?} in {error:?}");
    }
}
