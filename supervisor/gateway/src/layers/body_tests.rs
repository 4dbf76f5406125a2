use std::io;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use http::StatusCode;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::*;
use crate::backends::{Backends, SocketPaths};
use crate::testing::{FixedCallers, test_settings};

fn routes() -> Router {
    let connector = Arc::new(SocketPaths { host: "/nonexistent".into(), agent: "/nonexistent".into() }) as _;
    let mut settings = test_settings("127.0.0.1:1".parse().unwrap());
    settings.limits.body_bytes = 1000;
    settings.limits.body_timeout = Duration::from_secs(10);
    let ending = CancellationToken::new();
    let app = App::new(settings, Backends::new(&connector), Arc::new(FixedCallers::default()), ending);
    let echo = async |body: Bytes| body.len().to_string();
    let own = async || Problem::new(ProblemKind::TooLarge, "8 bytes are the most here");
    let passed = async || {
        let mut reply = (StatusCode::PAYLOAD_TOO_LARGE, "too long a title").into_response();
        reply.extensions_mut().insert(ForeignReply);
        reply
    };
    let routes = Router::new().route("/", post(echo)).route("/own", post(own)).route("/passed", post(passed));
    routes.layer(from_fn_with_state(app, bounded_body))
}

async fn status(body: Body) -> (StatusCode, bool) {
    let request = Request::builder().method("POST").uri("/").body(body).unwrap();
    let response = routes().oneshot(request).await.unwrap();
    (response.status(), response.headers().contains_key(CONNECTION))
}

/// Pieces of a body, each after this time.
fn pieces(count: usize, bytes: usize, after: Duration) -> Body {
    let stream = futures_util::stream::unfold(0, move |sent| async move {
        if sent == count {
            return None;
        }
        tokio::time::sleep(after).await;
        Some((Ok::<_, io::Error>(vec![b'x'; bytes]), sent + 1))
    });
    Body::from_stream(stream)
}

// Promises: GW-42
#[tokio::test(start_paused = true)]
async fn a_body_has_its_time_as_a_whole() {
    assert_eq!(status(pieces(9, 1, Duration::from_secs(1))).await, (StatusCode::OK, false));
    // Each piece comes soon, and the whole does not.
    assert_eq!(status(pieces(60, 1, Duration::from_secs(1))).await, (StatusCode::REQUEST_TIMEOUT, true));
}

// Promises: GW-43
#[tokio::test(start_paused = true)]
async fn a_body_without_a_length_is_as_limited_as_one_that_says_it() {
    assert_eq!(status(Body::from(vec![b'x'; 1000])).await, (StatusCode::OK, false));
    assert_eq!(status(pieces(100, 100, Duration::ZERO)).await, (StatusCode::PAYLOAD_TOO_LARGE, true));
}

// Promises: GW-43
#[tokio::test]
async fn a_refusal_of_a_routes_own_keeps_its_text() {
    for (path, said, closes) in
        [("/own", "8 bytes are the most here", true), ("/passed", "too long a title", false)]
    {
        let request = Request::builder().method("POST").uri(path).body(Body::from("x")).unwrap();
        let response = routes().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(response.headers().contains_key(CONNECTION), closes, "{path}");
        let body = axum::body::to_bytes(response.into_body(), 1000).await.unwrap();
        assert!(String::from_utf8_lossy(&body).contains(said), "{path}: {body:?}");
    }
}
