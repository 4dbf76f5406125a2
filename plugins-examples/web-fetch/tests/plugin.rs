//! The binary under the SDK's mock host, against a loopback server.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;
use talon_sdk::testing::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_web-fetch");

/// Serves one page once; gives its URL.
fn page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("asked");
        let _ = stream.read(&mut [0; 4096]).expect("reads");
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<h1>Hello</h1>";
        stream.write_all(answer.as_bytes()).expect("writes");
    });
    url
}

#[tokio::test]
async fn it_fetches_a_page() {
    let host =
        Host::builder(PROGRAM).config(json!({"allow_private": true})).launch().await.expect("launches");
    let answer = host.call("fetch", json!({"url": page()})).await.expect("answers");
    assert!(answer.content.contains("Hello"), "{answer:?}");
    assert_eq!(answer.structured.expect("structured")["status"], 200);
    assert!(host.shutdown().await.expect("ends").success());
}

#[tokio::test]
async fn a_machine_without_certificates_still_gets_plain_http() {
    let host = Host::builder(PROGRAM)
        .env("SSL_CERT_FILE", "/nonexistent")
        .env("SSL_CERT_DIR", "/nonexistent")
        .config(json!({"allow_private": true}))
        .launch()
        .await
        .expect("launches");
    let answer = host.call("fetch", json!({"url": page()})).await.expect("answers");
    assert!(answer.content.contains("Hello"), "{answer:?}");
}

// Promises: EX-5
#[tokio::test]
async fn without_a_config_it_stays_on_the_public_internet() {
    let host = Host::launch(PROGRAM).await.expect("launches");
    let answer = host.call("fetch", json!({"url": "http://127.0.0.1:1/"})).await.expect("answers");
    assert!(answer.error.expect("refused").contains("private address"));
}

#[tokio::test]
async fn a_bad_config_is_refused_with_its_reason() {
    for (config, says) in [
        (json!({"allow_host": []}), "unknown field `allow_host`, expected `allow_hosts` or `allow_private`"),
        (json!({"allow_hosts": ["http://x"]}), "is no host; write example.org or *.example.org"),
    ] {
        let error = Host::builder(PROGRAM).config(config).launch().await.expect_err("refused").to_string();
        assert!(error.contains(says), "expected {says:?} in {error:?}");
    }
}
