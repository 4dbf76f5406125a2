//! Where the `Authorization` header of a request comes from.

use futures_util::future::BoxFuture;
use http::HeaderValue;

/// Gives the header of each request, which may change while the bridge runs.
pub(crate) trait Authorization: Send + Sync {
    /// The header of the next request.
    fn header(&self) -> BoxFuture<'_, Result<HeaderValue, AuthorizationError>>;

    /// The rights that the header gives, as far as they are known: names with spaces between them.
    fn scope(&self) -> BoxFuture<'_, Option<String>>;

    /// The header for another try, when the server refused this one.
    fn renewed<'a>(
        &'a self,
        refused: &'a HeaderValue,
    ) -> BoxFuture<'a, Result<HeaderValue, AuthorizationError>>;
}

/// Why there is no header, as the caller reads it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct AuthorizationError(pub(crate) String);
