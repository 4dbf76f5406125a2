//! The tool in-process against a loopback server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use talon_sdk::testing::Call;
use talon_sdk::{Output, ToolError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fetch::{Fetcher, fetch};
use crate::policy::Config;

/// Answers each path with fixed bytes, regardless of the rest of the request. An unknown path is never
/// answered.
async fn server(answers: &[(&'static str, Vec<u8>)]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    let answers: Arc<HashMap<_, _>> = Arc::new(answers.iter().cloned().collect());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answers = Arc::clone(&answers);
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).await.expect("reads");
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                let path = request.split(' ').nth(1).expect("a path");
                match answers.get(path) {
                    // The client may close the connection in the middle.
                    Some(answer) => drop(stream.write_all(answer).await),
                    None => std::future::pending().await,
                }
            });
        }
    });
    address
}

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n{body}").into_bytes()
}

fn html(body: &str) -> Vec<u8> {
    answer("200 OK", "content-type: text/html\r\n", body)
}

fn config(config: Value) -> Config {
    talon_sdk::serde_json::from_value(config).expect("a config")
}

async fn run(settings: Value, args: Value) -> Result<Output, ToolError> {
    let fetcher = Fetcher::new(config(settings)).expect("made");
    Call::new(fetch()).with(fetcher).args(args).run().await
}

async fn get(address: SocketAddr, path: &str) -> Result<Output, ToolError> {
    run(json!({"allow_private": true}), json!({"url": format!("http://{address}{path}")})).await
}

// Promises: EX-4
#[tokio::test]
async fn a_page_becomes_text() {
    let address = server(&[("/", html("<h1>Title</h1><p>Some <b>words</b>.</p>"))]).await;
    let output = get(address, "/").await.expect("fetched");
    assert!(output.content().contains("Title") && output.content().contains("Some words."), "{output:?}");
    let page = output.structured_content().expect("structured");
    assert_eq!((&page["status"], &page["truncated"]), (&json!(200), &json!(false)));
}

#[tokio::test]
async fn redirects_are_followed_up_to_a_point() {
    let away = |to: &str| answer("302 Found", &format!("location: {to}\r\n"), "");
    let address = server(&[
        ("/a", away("b?x=1")),
        ("/b?x=1", away("/c")),
        ("/c", html("arrived")),
        ("/loop", away("/loop")),
        ("/file", away("file:///etc/passwd")),
        ("/meta", away("http://169.254.169.254/latest/meta-data/")),
    ])
    .await;
    let output = get(address, "/a").await.expect("fetched");
    assert_eq!(output.content(), "arrived");
    assert_eq!(output.structured_content().expect("structured")["url"], format!("http://{address}/c"));
    let error = get(address, "/loop").await.expect_err("refused");
    assert!(error.message().contains("more than 5 redirects"), "{error:?}");
    let error = get(address, "/file").await.expect_err("refused");
    assert!(error.message().contains("only http and https"), "{error:?}");
    let hosts = json!({"allow_private": true, "allow_hosts": ["127.0.0.1"]});
    let error = run(hosts, json!({"url": format!("http://{address}/meta")})).await.expect_err("refused");
    assert!(error.message().contains("does not allow fetching from 169.254.169.254"), "{error:?}");
}

// Promises: EX-4
#[tokio::test]
async fn a_response_is_read_up_to_its_limit() {
    let long = "word ".repeat(1_000_000);
    // A wrong Content-Length does not matter.
    let headers = "content-type: text/plain\r\ncontent-length: 5000000\r\n";
    let address = server(&[("/", answer("200 OK", headers, &long))]).await;
    let args = json!({"url": format!("http://{address}/"), "max_bytes": 1000});
    let output = run(json!({"allow_private": true}), args).await.expect("fetched");
    let page = output.structured_content().expect("structured");
    assert_eq!((&page["bytes"], &page["truncated"]), (&json!(1000), &json!(true)));
    assert!(output.content().ends_with("cut after 1000 bytes of the response; raise max_bytes to read on"));
    let args = json!({"url": format!("http://{address}/"), "max_bytes": 4_000_000_000_u32});
    let output = run(json!({"allow_private": true}), args).await.expect("fetched");
    assert_eq!(output.structured_content().expect("structured")["bytes"], 2 << 20);
}

#[tokio::test]
async fn what_is_no_text_or_no_success_is_explained() {
    let address = server(&[
        ("/png", answer("200 OK", "content-type: image/png\r\n", "x")),
        ("/gone", answer("404 Not Found", "content-type: text/html\r\n", "x")),
        (
            "/broken",
            b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nshort".to_vec(),
        ),
        ("/garbage", b"this is no HTTP at all\r\n\r\n".to_vec()),
    ])
    .await;
    for (path, says) in [
        ("/png", "image/png, not text"),
        ("/gone", "answered 404 Not Found"),
        ("/broken", "broke off its answer"),
        ("/garbage", "broke off its answer"),
    ] {
        let error = get(address, path).await.expect_err(path);
        assert!(error.message().contains(says), "expected {says:?} in {error:?}");
    }
}

#[tokio::test]
async fn private_addresses_are_refused_by_number_and_by_name() {
    let address = server(&[("/", html("secret"))]).await;
    for host in ["127.0.0.1", "localhost", "[::1]", "0x7f000001"] {
        let url = format!("http://{host}:{}/", address.port());
        let error = run(json!({}), json!({"url": url})).await.expect_err(host);
        assert!(error.message().contains("public internet only"), "{host}: {error:?}");
    }
    let by_name = format!("http://localhost:{}/", address.port());
    let output = run(json!({"allow_private": true}), json!({"url": by_name})).await.expect("allowed");
    assert_eq!(output.content(), "secret");
}

#[tokio::test]
async fn a_server_that_never_answers_ends_with_the_deadline() {
    let address = server(&[]).await;
    let fetcher = Fetcher::new(config(json!({"allow_private": true}))).expect("made");
    let call = Call::new(fetch()).with(fetcher).args(json!({"url": format!("http://{address}/never")}));
    let error = call.timeout(std::time::Duration::from_millis(50)).run().await.expect_err("times out");
    assert_eq!(error.message(), "the deadline passed");
}

#[tokio::test]
async fn what_is_no_url_is_explained() {
    for (url, says) in [
        ("example.org", "this is no URL"),
        ("", "this is no URL"),
        ("file:///etc/passwd", "only http and https"),
        (&format!("http://x/{}", "y".repeat(9000)), "at most 8000 bytes"),
        ("http://127.0.0.1:1/", "cannot be reached"),
    ] {
        let error = run(json!({"allow_private": true}), json!({"url": url})).await.expect_err(url);
        assert!(error.message().contains(says), "expected {says:?} in {error:?}");
    }
}

/// A machine's public address is like any other until it is connected to. No test machine has one, so the
/// check stands alone here: the resolver gives 127.0.0.1 as if it were public.
// Promises: EX-5
#[tokio::test]
async fn this_machine_is_refused_by_whatever_address() {
    use crate::same_machine::{RefuseSameMachine, SameMachineError};

    let address = server(&[("/", html("secret"))]).await;
    for (allow, refused) in [(false, true), (true, false)] {
        let client = reqwest::Client::builder()
            .no_proxy()
            .resolve("public.example", address)
            .connector_layer(RefuseSameMachine { allow })
            .build()
            .expect("built");
        let answer = client.get(format!("http://public.example:{}/", address.port())).send().await;
        assert_eq!(answer.is_err(), refused, "{answer:?}");
        if let Err(error) = answer {
            let first: &(dyn std::error::Error + 'static) = &error;
            let mut causes = std::iter::successors(Some(first), |error| error.source());
            assert!(causes.any(|cause| cause.is::<SameMachineError>()), "{error:?}");
        }
    }
}
