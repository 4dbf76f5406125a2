//! What every request passes before its body is read: is its peer anybody, is there room, and does the body come.
//!
//! The server reads a request's message before it asks the service, and holds what it has read for as long as the
//! client likes. So many half-sent requests would hold much memory, also those of a peer who may do nothing at all.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body::{Body as HttpBody, Frame, SizeHint};
use pin_project_lite::pin_project;
use talon_listen::Held;
use tokio::time::{Instant, Sleep};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Bytes, http};
use tower::Service;

use super::incoming::{Place, Places};
use super::peer::permitted;
use super::{MAX_REQUESTS, MAX_REQUESTS_PER_UID, operators};
use crate::config::Role;

/// How long a request's body may take. The largest has a mebibyte or so, and comes over a unix socket. What an
/// administrator puts into the state is larger, and may take this long for each piece.
const BODY_WAIT: Duration = Duration::from_secs(30);

type Request = http::Request<Body>;
type Response = http::Response<Body>;

/// Stands in front of the host service.
#[derive(Clone)]
pub(super) struct Gate<S> {
    inner: S,
    requests: Arc<Places>,
}

impl<S> Gate<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner, requests: Places::new(MAX_REQUESTS, MAX_REQUESTS_PER_UID) }
    }

    /// Lets a request in; it keeps its place until its answer was taken.
    fn admit(&self, request: &Request) -> Result<Place, Status> {
        let peer = permitted(request.extensions(), Role::Call)?.peer;
        self.requests.take(peer.uid).ok_or_else(|| {
            Status::resource_exhausted(format!(
                "{MAX_REQUESTS_PER_UID} requests of one user, {MAX_REQUESTS} of all, are the most at once: wait for \
                 some to be answered"
            ))
        })
    }
}

impl<S> Service<Request> for Gate<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Admitted<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let place = match self.admit(&request) {
            Ok(place) => place,
            Err(status) => return Admitted::Refused { answer: Some(status.into_http()) },
        };
        let piecewise = request.uri().path().starts_with(operators::PATH_PREFIX);
        let answer = self.inner.call(request.map(|body| Body::new(InTime { body, late: None, piecewise })));
        Admitted::Let { answer, place: Some(place) }
    }
}

pin_project! {
    /// The answer to a request.
    #[project = AdmittedProjection]
    pub(super) enum Admitted<F> {
        /// That it was not let in.
        Refused { answer: Option<Response> },
        /// The service's, and the place that it keeps until it was taken.
        Let {
            #[pin]
            answer: F,
            place: Option<Place>,
        },
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for Admitted<F> {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        /// Futures are polled until they are ready, and no further.
        const POLLED_AGAIN: &str = "it was not answered yet";
        Poll::Ready(Ok(match self.project() {
            AdmittedProjection::Refused { answer } => answer.take().expect(POLLED_AGAIN),
            AdmittedProjection::Let { answer, place } => {
                let answer = ready!(answer.poll(cx))?;
                let place = place.take().expect(POLLED_AGAIN);
                answer.map(|body| Body::new(Held::new(body, place)))
            }
        }))
    }
}

/// A request's body that has to be there in time; one that comes piece by piece, each piece of it.
struct InTime {
    body: Body,
    /// The end of its time, once it was waited for. A small request comes with its headers, and needs no timer.
    late: Option<Pin<Box<Sleep>>>,
    piecewise: bool,
}

impl HttpBody for InTime {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            if self.piecewise
                && let Some(late) = &mut self.late
            {
                late.as_mut().reset(Instant::now() + BODY_WAIT);
            }
            return Poll::Ready(frame);
        }
        let late = self.late.get_or_insert_with(|| Box::pin(tokio::time::sleep(BODY_WAIT)));
        late.as_mut().poll(cx).map(|()| {
            let text = format!("the request was not sent whole within {} s", BODY_WAIT.as_secs());
            Some(Err(Status::deadline_exceeded(text)))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
