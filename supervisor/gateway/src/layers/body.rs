//! How large a request's body may be, and how long it may take as a whole: a byte a minute is no progress.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderValue;
use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::Limited;
use tokio::time::Sleep;

use crate::app::App;
use crate::problem::{ForeignReply, Problem, ProblemKind};

/// A layer: refuses bodies that are too large or compressed before any of it is read, and bounds the rest while it is read.
pub(crate) async fn bounded_body(State(app): State<App>, request: Request, next: Next) -> Response {
    let limits = app.settings().limits;
    let headers = request.headers();
    // A megabyte of compressed zeros is a gigabyte; nothing that we read needs it.
    if headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        let detail = "compressed bodies are not read: send it without Content-Encoding";
        return closing(Problem::new(ProblemKind::UnsupportedMediaType, detail));
    }
    let announced = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limits.body_bytes as u64) {
        return closing(too_large(limits.body_bytes));
    }
    let late = Arc::new(AtomicBool::new(false));
    let body =
        |body| Limited::new(TimedBody::new(body, limits.body_timeout, Arc::clone(&late)), limits.body_bytes);
    let response = next.run(request.map(|inner| Body::new(body(inner)))).await;
    if late.load(Ordering::Relaxed) {
        let seconds = limits.body_timeout.as_secs();
        let detail = format!("the body was not sent within {seconds} s: send it faster, or less of it");
        return closing(Problem::new(ProblemKind::RequestTimeout, detail));
    }
    let extensions = response.extensions();
    // A route's plugin has read the body, and speaks for itself.
    if response.status() != ProblemKind::TooLarge.status() || extensions.get::<ForeignReply>().is_some() {
        return response;
    }
    // A route with a limit of its own has said which.
    match extensions.get::<Problem>().cloned() {
        Some(problem) => closing(problem),
        None => closing(too_large(limits.body_bytes)),
    }
}

fn too_large(most: usize) -> Problem {
    Problem::new(
        ProblemKind::TooLarge,
        format!("the body may have {most} bytes (gateway.limits.body): send less"),
    )
}

/// The rest of the body is not read, so the connection is of no more use.
fn closing(problem: Problem) -> Response {
    let mut response = problem.into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A body that fails once its time is over.
struct TimedBody {
    body: Body,
    timeout: Duration,
    /// Started when there was something to wait for: most bodies come with their headers.
    deadline: Option<Pin<Box<Sleep>>>,
    late: Arc<AtomicBool>,
}

/// The body was not sent in time.
#[derive(Debug, thiserror::Error)]
#[error("the body was not sent in time")]
struct BodyTimeoutError;

impl TimedBody {
    fn new(body: Body, timeout: Duration, late: Arc<AtomicBool>) -> Self {
        Self { body, timeout, deadline: None, late }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        let timeout = self.timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        if deadline.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.late.store(true, Ordering::Relaxed);
        Poll::Ready(Some(Err(axum::Error::new(BodyTimeoutError))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
