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
use talon_listen::{
    BodyTimeout, ByteLimiter, BytePermit, ConnectionLimiter, ConnectionPermit, PermitBody, UnreadBody,
};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http;
use tower::Service;

use super::limits::{MAX_UNREAD_BYTES, MAX_UNREAD_BYTES_OF_ONE, RequestLimits};
use super::state_proxy;
use crate::config::Role;
use crate::peer::{Principal, authorize};

type Request = http::Request<Body>;
type Response = http::Response<Body>;

/// Limits the concurrent requests of one server. Clones share state.
#[derive(Clone)]
pub(super) struct RequestLimiter {
    requests: Arc<ConnectionLimiter<Principal>>,
    unread: Arc<ByteLimiter<Principal>>,
    limits: RequestLimits,
}

/// The permits of an admitted request.
pub(super) struct AdmittedRequest {
    /// Held until the client has received the answer.
    pub(super) place: ConnectionPermit<Principal>,
    /// For its bytes, until it is read.
    pub(super) unread: BytePermit<Principal>,
}

impl RequestLimiter {
    pub(super) fn new(limits: RequestLimits) -> Self {
        Self {
            requests: ConnectionLimiter::new(limits.all, limits.of_one),
            unread: ByteLimiter::new(MAX_UNREAD_BYTES, MAX_UNREAD_BYTES_OF_ONE),
            limits,
        }
    }

    /// Admits a request.
    pub(super) fn admit(&self, extensions: &http::Extensions) -> Result<AdmittedRequest, Status> {
        let principal = authorize(extensions, Role::Call)?.peer.principal();
        let place = self.requests.acquire(principal.clone()).map_err(|limit| {
            let keys = [self.limits.all_key, self.limits.of_one_key].map(|key| format!("host.limits.{key}"));
            limit.status("requests", "wait for some to be answered", keys.each_ref().map(String::as_str))
        })?;
        Ok(AdmittedRequest { place, unread: self.unread.permit(principal) })
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
        let AdmittedRequest { place, unread } = match self.requests.admit(request.extensions()) {
            Ok(admitted) => admitted,
            Err(status) => return ResponseFuture::Refused { answer: Some(status.into_http()) },
        };
        let piecewise = request.uri().path().starts_with(state_proxy::PATH_PREFIX);
        let limited = |body| Body::new(UnreadBody::new(BodyTimeout::new(body, piecewise), unread));
        let answer = self.inner.call(request.map(limited));
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
