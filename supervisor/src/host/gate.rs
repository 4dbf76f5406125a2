//! Checks every request before its body is read: the peer's rights, the request limits and the time for the
//! body.
//!
//! The server reads a request's message before it calls the service, and holds what it has read for as long
//! as the client likes. Without this check, many half-sent requests would hold much memory, even from a peer
//! without any rights.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use talon_listen::{BodyTimeout, ConnectionLimiter, ConnectionPermit, PermitBody};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http;
use tower::Service;

use super::limits::{MAX_REQUESTS, MAX_REQUESTS_PER_UID};
use super::state_proxy;
use crate::config::Role;
use crate::peer::{Principal, authorize};

type Request = http::Request<Body>;
type Response = http::Response<Body>;

/// Limits the concurrent requests of one server. Clones share state.
#[derive(Clone)]
pub(super) struct RequestLimiter(Arc<ConnectionLimiter<Principal>>);

impl Default for RequestLimiter {
    fn default() -> Self {
        Self(ConnectionLimiter::new(MAX_REQUESTS, MAX_REQUESTS_PER_UID))
    }
}

impl RequestLimiter {
    /// Admits a request; the permit is held until the client has received the answer.
    pub(super) fn admit(&self, extensions: &http::Extensions) -> Result<ConnectionPermit<Principal>, Status> {
        let peer = authorize(extensions, Role::Call)?.peer;
        self.0.acquire(peer.principal()).ok_or_else(|| {
            Status::resource_exhausted(format!(
                "{MAX_REQUESTS_PER_UID} requests of one user, {MAX_REQUESTS} of all, are the most at once: wait for \
                 some to be answered"
            ))
        })
    }
}

/// A tower service in front of tonic's generated server.
#[derive(Clone)]
pub(super) struct Gate<S> {
    inner: S,
    requests: RequestLimiter,
}

impl<S> Gate<S> {
    pub(super) fn new(inner: S, requests: RequestLimiter) -> Self {
        Self { inner, requests }
    }
}

impl<S> Service<Request> for Gate<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let place = match self.requests.admit(request.extensions()) {
            Ok(place) => place,
            Err(status) => return ResponseFuture::Refused { answer: Some(status.into_http()) },
        };
        let piecewise = request.uri().path().starts_with(state_proxy::PATH_PREFIX);
        let answer = self.inner.call(request.map(|body| Body::new(BodyTimeout::new(body, piecewise))));
        ResponseFuture::Admitted { answer, place: Some(place) }
    }
}

pin_project! {
    /// The answer to a request.
    #[project = AdmittedProjection]
    pub(super) enum ResponseFuture<F> {
        /// The request was refused.
        Refused { answer: Option<Response> },
        /// The service's answer, with the permit that is held until the client has received it.
        Admitted {
            #[pin]
            answer: F,
            place: Option<ConnectionPermit<Principal>>,
        },
    }
}

impl<F: Future<Output = Result<Response, Infallible>>> Future for ResponseFuture<F> {
    type Output = Result<Response, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        /// A future must not be polled again after it is ready.
        const POLLED_AGAIN: &str = "it was not answered yet";
        Poll::Ready(Ok(match self.project() {
            AdmittedProjection::Refused { answer } => answer.take().expect(POLLED_AGAIN),
            AdmittedProjection::Admitted { answer, place } => {
                let answer = ready!(answer.poll(cx))?;
                let place = place.take().expect(POLLED_AGAIN);
                answer.map(|body| Body::new(PermitBody::new(body, place)))
            }
        }))
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
