//! The id of a request: made here, never taken from the client, so that it cannot be forged or repeated.

use std::fmt;
use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderName, HeaderValue};
use tracing::Instrument as _;

use crate::random;

/// The header of each answer with its request's id.
const HEADER: HeaderName = HeaderName::from_static("x-request-id");

tokio::task_local! {
    static CURRENT: RequestId;
}

/// The id of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of the request that is being answered; `None` outside of one, as in a stream after its headers.
#[must_use]
pub fn request_id() -> Option<RequestId> {
    CURRENT.try_with(RequestId::clone).ok()
}

/// A layer: the request has an id as an extension, in every problem, in its answer's header, and in the log.
pub(crate) async fn with_request_id(mut request: Request, next: Next) -> Response {
    let id = RequestId(random::id("req").into());
    request.extensions_mut().insert(id.clone());
    let span = tracing::info_span!("request", request_id = %id);
    let answered = CURRENT.scope(id.clone(), next.run(request)).instrument(span);
    let mut response = answered.await;
    let value = HeaderValue::try_from(&*id.0).expect("its letters are those of header values");
    response.headers_mut().insert(HEADER, value);
    response
}
