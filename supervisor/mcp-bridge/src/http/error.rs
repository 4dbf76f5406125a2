//! Why a request to a server failed.

use http::StatusCode;
use talon_error_chain::error_chain;

use crate::server::lines::MAX_MESSAGE_BYTES;

/// Why a request failed, as the caller reads it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("{0}")]
    Request(String),
    #[error(
        "it answers with a redirect (HTTP {status}) to {location:?}, which is not followed: write that url, if you trust it"
    )]
    Redirect { status: u16, location: String },
    #[error(
        "it wants to know who asks (HTTP {status}): put the header that it expects into config.headers, such as Authorization, or log in with `{command}`, if it has logins"
    )]
    Unauthorized { status: u16, command: String },
    #[error("it wants a login (HTTP {status}): run `{command}`, or put a header into config.headers")]
    LoginNeeded { status: u16, command: String },
    #[error("it wants a login with more rights (HTTP {status}): run `{command} --scope {scope:?}`")]
    Scope { status: u16, scope: String, command: String },
    #[error("{0}")]
    NoToken(String),
    #[error("it answers with HTTP {status}{retry}: {text:?}")]
    Status { status: u16, retry: String, text: String },
    #[error("its answer is larger than the {MAX_MESSAGE_BYTES} bytes that are read; ask for less at once")]
    TooLarge,
    #[error(
        "it answers with {0:?} instead of JSON or an event stream: is this the address of an MCP server?"
    )]
    ContentType(String),
    #[error("its answer cannot be read as MCP: {0:?}")]
    NotMcp(String),
}

/// Whether the supervisor's proxy does not let the plugin reach this host.
pub(super) fn is_forbidden(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|error| error.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Whether a status says that the same request may succeed later.
pub(super) fn is_out_of_service(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

pub(super) fn failure(error: &(dyn std::error::Error + 'static)) -> HttpError {
    HttpError::Request(error_chain(error))
}
