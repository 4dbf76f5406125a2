use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;

use super::*;

struct Scene {
    _dir: tempfile::TempDir,
    listener: UnixListener,
    exchange: Arc<Exchange>,
}

fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    Scene { _dir: dir, listener, exchange: Arc::new(Exchange::new(socket)) }
}

/// Sends a request in a separate task.
fn asks(exchange: &Arc<Exchange>, id: &'static str) -> tokio::task::JoinHandle<Result<String, String>> {
    let exchange = exchange.clone();
    tokio::spawn(async move {
        let args = BTreeMap::new();
        let request = Request { method: "execute", id, plugin: "p", action: "a", args: Some(&args) };
        exchange.request(&request).await.map(|answer| answer.content).map_err(|error| error.to_string())
    })
}

/// Reads one request from a connection.
async fn asked(stream: &mut UnixStream) -> serde_json::Value {
    serde_json::from_slice(&frame::read(stream).await.unwrap()).unwrap()
}

async fn answers(stream: &mut UnixStream, id: &str, content: &str) {
    let body = serde_json::json!({ "call_id": id, "content": content }).to_string();
    frame::write(stream, body.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn one_call_after_the_other_has_one_connection() {
    let Scene { listener, exchange, _dir } = scene();
    let mut call = asks(&exchange, "1");
    let (mut stream, _) = listener.accept().await.unwrap();
    for id in ["1", "2", "3"] {
        assert_eq!(asked(&mut stream).await["id"], id);
        answers(&mut stream, id, id).await;
        assert_eq!(call.await.unwrap().unwrap(), id);
        call = asks(&exchange, if id == "1" { "2" } else { "3" });
    }
}

#[tokio::test]
async fn a_program_that_serves_one_connection_after_the_other_answers_calls_at_once() {
    let Scene { listener, exchange, _dir } = scene();
    let calls = [asks(&exchange, "1"), asks(&exchange, "2"), asks(&exchange, "3")];
    let serial = tokio::spawn(async move {
        let mut answered = 0;
        while answered < 3 {
            let (mut stream, _) = listener.accept().await.unwrap();
            while let Ok(body) = frame::read(&mut stream).await {
                let request: serde_json::Value = serde_json::from_slice(&body).unwrap();
                let id = request["id"].as_str().unwrap();
                answers(&mut stream, id, id).await;
                answered += 1;
                if answered == 3 {
                    break;
                }
            }
        }
    });
    for (id, call) in ["1", "2", "3"].into_iter().zip(calls) {
        assert_eq!(call.await.unwrap().unwrap(), id);
    }
    serial.await.unwrap();
}

#[tokio::test]
async fn a_call_that_is_given_up_takes_its_connection_along() {
    let Scene { listener, exchange, _dir } = scene();
    let given_up = asks(&exchange, "1");
    let (mut first, _) = listener.accept().await.unwrap();
    asked(&mut first).await;
    given_up.abort();
    assert!(given_up.await.unwrap_err().is_cancelled());
    assert!(matches!(frame::read(&mut first).await, Err(FrameError::Closed)), "it is told");
    let next = asks(&exchange, "2");
    let (mut second, _) = listener.accept().await.unwrap();
    assert_eq!(asked(&mut second).await["id"], "2");
    answers(&mut second, "2", "late answers reach nobody").await;
    assert_eq!(next.await.unwrap().unwrap(), "late answers reach nobody");
}

#[tokio::test]
async fn an_answer_to_something_else_is_thrown_away_with_its_connection() {
    let Scene { listener, exchange, _dir } = scene();
    let call = asks(&exchange, "2");
    let (mut stream, _) = listener.accept().await.unwrap();
    asked(&mut stream).await;
    answers(&mut stream, "1", "somebody else's").await;
    let said = call.await.unwrap().unwrap_err();
    assert!(said.contains(r#"answered call "1" when it was asked "2""#), "{said}");
    assert!(frame::read(&mut stream).await.is_err(), "the connection is gone");
}

#[tokio::test]
async fn an_answer_without_an_id_is_the_connections() {
    let Scene { listener, exchange, _dir } = scene();
    let call = asks(&exchange, "2");
    let (mut stream, _) = listener.accept().await.unwrap();
    asked(&mut stream).await;
    answers(&mut stream, "", "fine").await;
    assert_eq!(call.await.unwrap().unwrap(), "fine");
}

#[tokio::test]
async fn what_came_unasked_is_nobodys_answer() {
    let Scene { listener, exchange, _dir } = scene();
    let call = asks(&exchange, "1");
    let (mut first, _) = listener.accept().await.unwrap();
    asked(&mut first).await;
    answers(&mut first, "1", "1").await;
    call.await.unwrap().unwrap();
    answers(&mut first, "", "unasked").await;
    let call = asks(&exchange, "2");
    let (mut second, _) = listener.accept().await.unwrap();
    asked(&mut second).await;
    answers(&mut second, "2", "asked").await;
    assert_eq!(call.await.unwrap().unwrap(), "asked");
}

#[tokio::test]
async fn a_connection_that_ended_while_idle_is_made_anew() {
    let Scene { listener, exchange, _dir } = scene();
    let call = asks(&exchange, "1");
    let (mut first, _) = listener.accept().await.unwrap();
    asked(&mut first).await;
    answers(&mut first, "1", "1").await;
    call.await.unwrap().unwrap();
    drop(first);
    let call = asks(&exchange, "2");
    let (mut second, _) = listener.accept().await.unwrap();
    asked(&mut second).await;
    answers(&mut second, "2", "2").await;
    assert_eq!(call.await.unwrap().unwrap(), "2");
}

#[tokio::test]
async fn every_way_to_break_is_told() {
    let Scene { listener, exchange, _dir } = scene();
    for (bytes, says) in [
        (&b""[..], "without an answer"),
        (b"\0\0\0\x40{\"content\":", "in the middle of its answer"),
        (b"\xff\xff\xff\xff", "announces an answer of 4294967295 bytes"),
        (b"\0\0\0\x02-1", "cannot be read"),
        (b"\0\0\0\x04\xff\xfe\xfd\xfc", "cannot be read"),
    ] {
        let call = asks(&exchange, "1");
        let (mut stream, _) = listener.accept().await.unwrap();
        asked(&mut stream).await;
        stream.write_all(bytes).await.unwrap();
        drop(stream);
        let said = call.await.unwrap().unwrap_err();
        assert!(said.contains(says) && said.len() < 400, "{says:?} is not in {said:?}");
    }
    drop(listener);
    let said = asks(&exchange, "1").await.unwrap().unwrap_err();
    assert!(said.starts_with("cannot connect to its socket"), "{said}");
}
