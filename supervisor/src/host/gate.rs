//! What every request passes before its body is read: is its peer anybody, is there room, and does the body come.
//!
//! The server reads a request's message before it asks the service, and holds what it has read for as long as the
//! client likes. So many half-sent requests would hold much memory, also those of a peer who may do nothing at all.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use http_body::{Body as HttpBody, Frame, SizeHint};
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
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let place = match self.admit(&request) {
            Ok(place) => place,
            Err(status) => return Box::pin(std::future::ready(Ok(status.into_http()))),
        };
        let piecewise = request.uri().path().starts_with(operators::PATH_PREFIX);
        let late = || Box::pin(tokio::time::sleep(BODY_WAIT));
        let answer = self.inner.call(request.map(|body| Body::new(InTime { body, late: late(), piecewise })));
        Box::pin(async move { Ok(answer.await?.map(|body| Body::new(Held::new(body, place)))) })
    }
}

/// A request's body that has to be there in time; one that comes piece by piece, each piece of it.
struct InTime {
    body: Body,
    late: Pin<Box<Sleep>>,
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
            if self.piecewise {
                self.late.as_mut().reset(Instant::now() + BODY_WAIT);
            }
            return Poll::Ready(frame);
        }
        self.late.as_mut().poll(cx).map(|()| {
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
