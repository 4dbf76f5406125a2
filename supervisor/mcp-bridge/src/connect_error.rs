//! Why a server could not be connected to.

use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::ClientInitializeError;
use talon_bridge::text::{MAX_ERROR_TEXT_BYTES, cut};
use talon_error_chain::error_chain;

use crate::http::TlsError;
use crate::negotiate::NegotiateError;

/// How much is shown of an answer that is no beginning of MCP, and how many revisions.
const MAX_VIOLATION_BYTES: usize = 300;
const MAX_SHOWN_VERSIONS: usize = 8;

/// Why connecting failed. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the MCP server {server} cannot be started: {source}; correct its command")]
    Start { server: String, source: std::io::Error },
    #[error("the MCP server {server} cannot be reached: {why}")]
    Tls { server: String, why: TlsError },
    #[error(
        "the MCP server {server} did not answer `{method}` within {seconds} s: see that it is one, and give it longer with start_timeout"
    )]
    Timeout { server: String, method: &'static str, seconds: u64 },
    #[error("the MCP server {server} {how} before it answered: its log says why")]
    Ended { server: String, how: String },
    #[error(
        "the MCP server {server} {how}, because its code cannot be loaded, as its log says: install what it lacks, or other versions"
    )]
    Import { server: String, how: String },
    #[error("the MCP server {server} cannot be reached: {why}")]
    Unreachable { server: String, why: String },
    /// It is away, so that another start later may succeed.
    #[error("{0}")]
    Away(Box<Self>),
    #[error(
        "the MCP server {server} refuses to begin, with error {code}: {message}; check what it needs, and config.protocol"
    )]
    Refused { server: String, code: i32, message: String },
    #[error(
        "the MCP server {server} speaks {theirs} of MCP, and known here are {}: use a version of the server that speaks one of them",
        known_versions()
    )]
    Revision { server: String, theirs: String },
    #[error("the MCP server {server} does not speak MCP as it should: {why}; report it to its author")]
    ProtocolViolation { server: String, why: String },
}

fn known_versions() -> String {
    ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect::<Vec<_>>().join(", ")
}

impl ConnectError {
    /// The error of a beginning that took this many seconds.
    pub(crate) fn of_negotiation(server: String, error: NegotiateError, seconds: u64) -> Self {
        match error {
            NegotiateError::Closed { .. } => Self::closed(server),
            NegotiateError::Send { why, .. } => Self::Unreachable { server, why: error_chain(why.as_ref()) },
            NegotiateError::Refused(error) => Self::refused(server, &error),
            NegotiateError::Versions(versions) => Self::versions(server, &versions),
            NegotiateError::Unexpected(message) => {
                let why = format!("it answers {}", serde_json::to_string(&message).unwrap_or_default());
                Self::ProtocolViolation { server, why: cut(&why, MAX_VIOLATION_BYTES) }
            }
            NegotiateError::Timeout(method) => Self::Timeout { server, method, seconds },
        }
    }

    /// The library's error at the beginning.
    pub(crate) fn of_library(server: String, error: ClientInitializeError) -> Self {
        use ClientInitializeError as E;

        match error {
            E::JsonRpcError(error) => Self::refused(server, &error),
            E::NoCompatibleProtocolVersion { server_supported, .. } => {
                Self::versions(server, &server_supported)
            }
            E::ConnectionClosed(_) => Self::closed(server),
            E::TransportError { error, .. } => {
                Self::Unreachable { server, why: error_chain(error.error.as_ref()) }
            }
            other => Self::ProtocolViolation { server, why: cut(&other.to_string(), MAX_VIOLATION_BYTES) },
        }
    }

    /// The same, as one that passes when the server is back; only of what no setting could mend.
    pub(crate) fn into_outage(self) -> Self {
        match self {
            Self::Timeout { .. } | Self::Ended { .. } | Self::Unreachable { .. } => {
                Self::Away(Box::new(self))
            }
            error => error,
        }
    }

    /// The same, of a server whose code cannot be loaded, if it ended.
    pub(crate) fn into_import_failure(self) -> Self {
        match self {
            Self::Ended { server, how } => Self::Import { server, how },
            error => error,
        }
    }

    fn closed(server: String) -> Self {
        Self::Ended { server, how: "closed its output, and still runs,".to_owned() }
    }

    fn refused(server: String, error: &ErrorData) -> Self {
        Self::Refused { server, code: error.code.0, message: cut(&error.message, MAX_ERROR_TEXT_BYTES) }
    }

    fn versions(server: String, versions: &[ProtocolVersion]) -> Self {
        let theirs: Vec<_> = versions.iter().take(MAX_SHOWN_VERSIONS).map(|v| cut(v.as_str(), 40)).collect();
        let theirs =
            if theirs.is_empty() { "no revision".to_owned() } else { format!("only {}", theirs.join(", ")) };
        Self::Revision { server, theirs }
    }

    /// A closed pipe explains little; the exit status of the process explains more.
    pub(crate) fn with_exit(self, how: Option<String>) -> Self {
        match (self, how) {
            (Self::Ended { server, .. } | Self::Unreachable { server, .. }, Some(how)) => {
                Self::Ended { server, how }
            }
            (error, _) => error,
        }
    }
}
