//! The binary under the SDK's mock host.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};
use talon_sdk::testing::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_webhook");

fn notification() -> Value {
    json!({"event": {"id": "01K1", "kind": "test", "severity": "info", "summary": "x", "time_unix_ms": 0, "count": 1}, "attempt": 1})
}

// Promises: EXT-75
#[tokio::test]
async fn it_posts_once_and_is_no_tool() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let url = format!("http://{}/hook?x=y", listener.local_addr().expect("an address"));
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("asked");
        let mut got = vec![0; 4096];
        let length = stream.read(&mut got).expect("reads");
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("writes");
        String::from_utf8_lossy(&got[..length]).into_owned()
    });
    let host = Host::builder(PROGRAM).config(json!({"url": url})).launch().await.expect("launches");
    let declared = host.capabilities().await.expect("it has some");
    assert_eq!(declared.actions[0].roles, ["notification_sink"]);
    let answer = host.call("send", notification()).await.expect("answers");
    assert_eq!(answer.structured, Some(json!({"status": "delivered"})), "{answer:?}");
    let got = serving.join().expect("served");
    assert!(got.starts_with("POST /hook?x=y HTTP/1.1\r\nhost: 127.0.0.1:"), "{got}");
    assert!(got.contains("\r\nidempotency-key: 01K1\r\n"), "{got}");
    assert!(host.shutdown().await.expect("ends").success());
}

#[tokio::test]
async fn without_a_url_it_says_what_to_configure() {
    let host = Host::launch(PROGRAM).await.expect("launches");
    let answer = host.call("send", notification()).await.expect("answers");
    assert!(answer.content.starts_with("retry: there is no URL: configure"), "{answer:?}");
}

#[tokio::test]
async fn a_bad_config_is_refused_with_its_reason() {
    for (config, says) in [
        (json!({"uri": "https://example.org"}), "unknown field `uri`"),
        (json!({"format": "teams"}), "unknown variant `teams`"),
        (json!({"timeout_seconds": 0}), "timeout_seconds is a number from 1 to 300"),
        (json!({"url": "http://example.org/"}), "allow_http"),
    ] {
        let error = Host::builder(PROGRAM).config(config).launch().await.expect_err("refused").to_string();
        assert!(error.contains(says), "expected {says:?} in {error:?}");
    }
}
