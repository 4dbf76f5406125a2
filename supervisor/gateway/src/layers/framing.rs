//! Where a request ends: of what is ambiguous nothing is read as a further request.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::HeaderValue;
use http::header::{CONNECTION, TRANSFER_ENCODING};

/// A layer: the connection is closed after a body in chunks. Of a request with a length as well, hyper takes the chunks and hides the
/// length; a proxy that goes by the length sees the next request elsewhere, so none may follow (RFC 9112, section 6.1).
pub(crate) async fn close_after_chunks(request: Request, next: Next) -> Response {
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let mut response = next.run(request).await;
    if is_chunked {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
