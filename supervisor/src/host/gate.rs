//! What every request passes before its body is read: is its peer anybody, is there room, and does the body come.
//!
//! The server reads a request's message before it asks the service, and holds what it has read for as long as the
//! client likes. So many half-sent requests would hold much memory, also those of a peer who may do nothing at all.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use talon_listen::{Held, InTime, Place, Places};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http;
use tower::Service;

use super::peer::permitted;
use super::{MAX_REQUESTS, MAX_REQUESTS_PER_UID, operators};
use crate::config::Role;

type Request = http::Request<Body>;
type Response = http::Response<Body>;

/// The places for requests of one server. Clones are the same.
#[derive(Clone)]
pub(super) struct Requests(Arc<Places>);

impl Default for Requests {
    fn default() -> Self {
        Self(Places::new(MAX_REQUESTS, MAX_REQUESTS_PER_UID))
    }
}

impl Requests {
    /// Lets a request in; it keeps its place until its answer was taken.
    pub(super) fn admit(&self, extensions: &http::Extensions) -> Result<Place, Status> {
        let peer = permitted(extensions, Role::Call)?.peer;
        self.0.take(peer.uid).ok_or_else(|| {
            Status::resource_exhausted(format!(
                "{MAX_REQUESTS_PER_UID} requests of one user, {MAX_REQUESTS} of all, are the most at once: wait for \
                 some to be answered"
            ))
        })
    }
}

/// Stands in front of what tonic's server answers.
#[derive(Clone)]
pub(super) struct Gate<S> {
    inner: S,
    requests: Requests,
}

impl<S> Gate<S> {
    pub(super) fn new(inner: S, requests: Requests) -> Self {
        Self { inner, requests }
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
        let place = match self.requests.admit(request.extensions()) {
            Ok(place) => place,
            Err(status) => return Admitted::Refused { answer: Some(status.into_http()) },
        };
        let piecewise = request.uri().path().starts_with(operators::PATH_PREFIX);
        let answer = self.inner.call(request.map(|body| Body::new(InTime::new(body, piecewise))));
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

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
