//! Limits requests before their bodies are read.
//!
//! The server reads a request's message before it calls the service, and holds what it has read for as long
//! as the client likes. So incomplete requests are bounded in number and time, and one user cannot use up the
//! slots of others.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use talon_agent_settings::LimitKeys;
use talon_listen::{BodyTimeout, ByteLimiter, ConnectionLimiter, ConnectionPermit, PermitBody, UnreadBody};
use tokio::sync::Semaphore;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::metadata::MetadataMap;
use tonic::server::NamedService;
use tower::Service;

use super::client::{Client, Principal};
use super::large_body::{LargeBody, LargeSlot};
use super::limits::{MAX_UNREAD_BYTES, MAX_UNREAD_BYTES_OF_ONE};

type Request = http::Request<Body>;
type Response = http::Response<Body>;

/// A layer in front of the service.
#[derive(Debug, Clone)]
pub(super) struct RequestLimiter<S> {
    inner: S,
    requests: Arc<ConnectionLimiter<Principal>>,
    unread: Arc<ByteLimiter<Principal>>,
    large: Arc<Semaphore>,
}

impl<S> RequestLimiter<S> {
    pub(super) fn new(inner: S, limits: LimitKeys) -> Self {
        let most = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        let large = Arc::new(Semaphore::new(most(limits.large_requests)));
        let unread = ByteLimiter::new(MAX_UNREAD_BYTES, MAX_UNREAD_BYTES_OF_ONE);
        let requests = ConnectionLimiter::new(most(limits.requests), most(limits.requests_per_user));
        Self { inner, requests, unread, large }
    }

    /// Admits a request, which keeps its slot until its answer is read. From here on it carries the client that it is for.
    fn admit(&self, request: &mut Request) -> Result<(Principal, ConnectionPermit<Principal>), Status> {
        let connected = request.extensions().get::<Client>().cloned();
        let connected = connected.ok_or_else(|| Status::internal("a request without a client"))?;
        let metadata = MetadataMap::from_headers(std::mem::take(request.headers_mut()));
        let client = connected.of_request(&metadata);
        *request.headers_mut() = metadata.into_headers();
        let client = client?;
        let principal = client.principal();
        request.extensions_mut().insert(client);
        let place = self.requests.acquire(principal.clone()).map_err(|limit| {
            let keys = ["agent.limits.requests", "agent.limits.requests_per_user"];
            limit.status("requests", "wait for some to be answered", keys)
        })?;
        Ok((principal, place))
    }
}

impl<S: NamedService> NamedService for RequestLimiter<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request> for RequestLimiter<S>
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

    fn call(&mut self, mut request: Request) -> Self::Future {
        let (principal, place) = match self.admit(&mut request) {
            Ok(admitted) => admitted,
            Err(status) => return std::future::ready(Ok(status.into_http())).boxed(),
        };
        let unread = self.unread.permit(principal);
        let (slots, slot) = (Arc::clone(&self.large), LargeSlot::default());
        let limited = |body| {
            let body = UnreadBody::new(BodyTimeout::new(body, false), unread);
            LargeBody::new(body, slots, Arc::clone(&slot))
        };
        let answer = self.inner.call(request.map(|body| Body::new(limited(body))));
        async move {
            let answer = answer.await?;
            drop(slot);
            Ok(answer.map(|body| Body::new(PermitBody::new(body, place))))
        }
        .boxed()
    }
}
