//! What one plugin can do to the others: nothing.

use std::convert::Infallible;
use std::io::Read as _;
use std::os::unix::net;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::Frame;
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use talon_proto::state::GetRequest;
use tokio::net::UnixStream;
use tonic::{Code, Request, Status};

use crate::plugin::{get, set};
use crate::support::{Place, Service, connect};

// Promises: STATE-11
#[tokio::test]
async fn one_connection_too_many_is_closed_and_others_are_served() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let socket = place.path("k");
    service.attach(1, "hello", &socket).await;
    let mut plugin = connect(&socket).await;
    set(&mut plugin, "a", b"x").await.unwrap();
    let opened: Vec<_> = (1..talon_state::limits::MAX_CONNECTIONS)
        .map(|_| net::UnixStream::connect(&socket).unwrap())
        .collect();
    let mut refused = net::UnixStream::connect(&socket).unwrap();
    let end = tokio::task::spawn_blocking(move || refused.read(&mut [0; 1])).await.unwrap();
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    assert!(get(&mut plugin, "a").await.unwrap().is_some());
    let mut other = service.plugin(&place, 2, "other").await;
    set(&mut other, "a", b"x").await.unwrap();
    drop(opened);
    assert!(service.log().contains("of one socket are the most"), "{}", service.log());
}

/// A body that never comes.
struct Never;

impl http_body::Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

type Sender = hyper::client::conn::http2::SendRequest<Never>;

/// A connection without a deadline.
async fn bare(socket: &Path) -> Sender {
    let stream = TokioIo::new(UnixStream::connect(socket).await.unwrap());
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// Sends a request whose message never comes, and waits for the response.
async fn half_sent(mut sender: Sender, deadline: &'static str) -> Status {
    let request = http::Request::post("http://talon/talon.state.v1.State/Set")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", deadline);
    let response = sender.send_request(request.body(Never).unwrap()).await.unwrap();
    Status::from_header_map(response.headers()).unwrap()
}

#[tokio::test]
async fn a_deadline_that_is_over_is_said() {
    let place = Place::new();
    let service = Service::at(&place).await;
    let mut plugin = service.plugin(&place, 1, "hello").await;
    let late = half_sent(bare(&place.path("hello-1")).await, "50m").await;
    assert_eq!(late.code(), Code::DeadlineExceeded, "{late:?}");
    assert!(late.message().contains("longer than 50ms"), "{late:?}");
    let mut far = Request::new(GetRequest { key: "a".into() });
    far.set_timeout(Duration::from_secs(60));
    plugin.get(far).await.unwrap();
}

// Promises: STATE-11
#[tokio::test]
async fn requests_beyond_the_most_are_refused_and_their_places_come_back() {
    use talon_state::limits::{MAX_REQUESTS, MAX_STREAMS};
    let place = Place::new();
    let service = Service::at(&place).await;
    let socket = place.path("k");
    service.attach(1, "hello", &socket).await;
    let mut plugin = connect(&socket).await;
    // In a separate runtime: its connections end with it.
    let hoarding =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    // Requests whose messages never come hold their places. Some more than there is room for, and each that
    // is refused comes again: one of ours may have had the last place just then.
    for _ in 0..=MAX_REQUESTS.div_ceil(MAX_STREAMS as usize) {
        let socket = socket.clone();
        hoarding.spawn(async move {
            let sender = bare(&socket).await;
            for _ in 0..MAX_STREAMS {
                let sender = sender.clone();
                tokio::spawn(async move {
                    loop {
                        half_sent(sender.clone(), "1H").await;
                    }
                });
            }
        });
    }
    let refused = loop {
        match get(&mut plugin, "a").await {
            Ok(_) => tokio::task::yield_now().await,
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    let mut other = service.plugin(&place, 2, "other").await;
    set(&mut other, "a", b"x").await.unwrap();
    hoarding.shutdown_background();
    while get(&mut plugin, "a").await.is_err() {
        tokio::task::yield_now().await;
    }
}
