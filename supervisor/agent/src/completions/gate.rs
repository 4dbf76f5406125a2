//! Limits a plugin's requests before their bodies are read.
//!
//! The server reads a request's message before it calls the service, and holds what it has read for as long as the
//! plugin likes. So half-sent requests are bounded in number and time, and one plugin cannot use up the memory of
//! others.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use talon_listen::{BodyTimeout, PermitBody};
use talon_proto::model::Refusal;
use tonic::body::Body;
use tonic::codegen::http;
use tonic::server::NamedService;
use tonic::{Code, Status};
use tower::Service;

use super::limits::MAX_REQUEST_BYTES;
use super::plugin::PluginModels;

type Request = http::Request<Body>;
type Response = http::Response<Body>;

/// A layer in front of the service.
#[derive(Debug, Clone)]
pub(super) struct Gate<S> {
    inner: S,
    plugin: Arc<PluginModels>,
}

impl<S> Gate<S> {
    pub(super) fn new(inner: S, plugin: Arc<PluginModels>) -> Self {
        Self { inner, plugin }
    }
}

impl<S: NamedService> NamedService for Gate<S> {
    const NAME: &'static str = S::NAME;
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
        let permit = match self.plugin.admit() {
            Ok(permit) => permit,
            Err(refused) => return std::future::ready(Ok(Status::from(refused).into_http())).boxed(),
        };
        let answer = self.inner.call(request.map(|body| Body::new(BodyTimeout::new(body, false))));
        async move {
            let answer = explain_size(answer.await?);
            Ok(answer.map(|body| Body::new(PermitBody::new(body, permit))))
        }
        .boxed()
    }
}

/// Replaces the library's error for a message that is too large, which says "out of range".
fn explain_size(response: Response) -> Response {
    let is_too_large = response
        .headers()
        .get(Status::GRPC_STATUS)
        .is_some_and(|code| code.as_bytes() == i32::from(Code::OutOfRange).to_string().as_bytes());
    if !is_too_large {
        return response;
    }
    let text = format!("a request may have {MAX_REQUEST_BYTES} bytes: send the part that matters");
    Refusal { reason: "invalid".to_owned() }.into_status(Code::InvalidArgument, text).into_http()
}
