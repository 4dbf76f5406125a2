//! Finds out which revision a server speaks, in one connection.
//!
//! Servers of the current revision answer `server/discover`, those of older ones `initialize`. The bridge asks
//! `server/discover` first, and `initialize` when that is refused, or not answered for a while. The first
//! request stays open then: a server that only starts slowly answers it later, and that counts.
//!
//! The library cannot do this, because it gives up a probe at its deadline. So the bridge asks both requests,
//! and the library gets the answer to the one that it would have sent ([`MessageFilter::answer_with`]).

use std::error::Error;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientConfig, ClientJsonRpcMessage, ClientRequest, DiscoverRequest, DiscoverRequestParams, ErrorCode,
    ErrorData, GetExtensions, InitializeRequest, NumberOrString, ProtocolVersion, RequestId,
    RequestMetaObject, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::ClientLifecycleMode;
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::server::message_filter::MessageFilter;

/// The ids of our requests: far above those of the library, which count from 0.
const DISCOVER_ID: i64 = 2_000_000_000;
const INITIALIZE_ID: i64 = 2_000_000_001;

/// What a server speaks.
#[derive(Debug)]
pub(crate) struct Agreement {
    /// How the library begins.
    pub(crate) mode: ClientLifecycleMode,
    /// The revision that it names.
    pub(crate) version: ProtocolVersion,
    /// The server's answer to its first request.
    pub(crate) answer: ServerResult,
}

/// Why there is no agreement.
#[derive(Debug)]
pub(crate) enum NegotiateError {
    /// The connection ended; whether `initialize` was asked by then.
    Closed { initialize_asked: bool },
    /// A request could not be sent.
    Send { initialize_asked: bool, why: Box<dyn Error + Send + Sync> },
    /// The server refuses to begin.
    Refused(ErrorData),
    /// It speaks other revisions.
    Versions(Vec<ProtocolVersion>),
    /// It answered something else.
    Unexpected(Box<ServerJsonRpcMessage>),
    /// The time is over; the method that it last got.
    Timeout(&'static str),
}

/// Agrees with a server, by `until`. If `server/discover` is not answered within `patience`, `initialize` is
/// asked as well.
pub(crate) async fn negotiate<T: Transport<RoleClient>>(
    filter: &mut MessageFilter<T>,
    us: &ClientConfig,
    patience: Duration,
    until: Instant,
) -> Result<Agreement, NegotiateError> {
    let mut negotiation = Negotiation { us, discover_open: false, initialize_open: false, refusal: None };
    let ended = timeout_at(until, negotiation.run(filter, patience)).await;
    match ended {
        Ok(ended) => ended,
        Err(_) => Err(match negotiation.refusal {
            Some(refusal) => NegotiateError::Refused(refusal),
            None if negotiation.initialize_open => NegotiateError::Timeout("initialize"),
            None => NegotiateError::Timeout("server/discover"),
        }),
    }
}

struct Negotiation<'a> {
    us: &'a ClientConfig,
    /// Whether these were asked, and are not answered.
    discover_open: bool,
    initialize_open: bool,
    /// The answer to `initialize` while the other may still be answered.
    refusal: Option<ErrorData>,
}

impl Negotiation<'_> {
    async fn run<T: Transport<RoleClient>>(
        &mut self,
        filter: &mut MessageFilter<T>,
        patience: Duration,
    ) -> Result<Agreement, NegotiateError> {
        let impatient_at = Instant::now() + patience;
        self.discover(filter).await?;
        loop {
            let asked = self.initialize_open || self.refusal.is_some();
            let message = tokio::select! {
                message = filter.receive() => message,
                () = sleep_until(impatient_at), if !asked => {
                    tracing::info!(
                        "the MCP server does not answer server/discover: it is asked initialize as well, and whichever \
                         answer comes first counts"
                    );
                    self.initialize(filter).await?;
                    continue;
                }
            };
            let Some(message) = message else {
                return Err(NegotiateError::Closed { initialize_asked: asked });
            };
            if self.discover_open && is_answer_to(&message, DISCOVER_ID) {
                self.discover_open = false;
                if let Some(agreement) = discovered(message)? {
                    return Ok(agreement);
                }
                match self.refusal.take() {
                    Some(refusal) => return Err(NegotiateError::Refused(refusal)),
                    None if asked => {}
                    None => self.initialize(filter).await?,
                }
            } else if self.initialize_open && is_answer_to(&message, INITIALIZE_ID) {
                self.initialize_open = false;
                match initialized(message) {
                    Err(NegotiateError::Refused(refusal)) if self.discover_open => {
                        self.refusal = Some(refusal);
                    }
                    ended => return ended,
                }
            } else {
                tracing::debug!("a message before the beginning is dropped");
            }
        }
    }

    async fn discover<T: Transport<RoleClient>>(
        &mut self,
        filter: &mut MessageFilter<T>,
    ) -> Result<(), NegotiateError> {
        let meta = RequestMetaObject::with_client_context(
            ProtocolVersion::LATEST,
            self.us.client_info.clone(),
            self.us.capabilities.clone(),
        );
        let mut request = DiscoverRequest::new(DiscoverRequestParams {});
        request.extensions_mut().insert(meta);
        self.discover_open = true;
        self.send(filter, ClientRequest::DiscoverRequest(request), DISCOVER_ID).await
    }

    async fn initialize<T: Transport<RoleClient>>(
        &mut self,
        filter: &mut MessageFilter<T>,
    ) -> Result<(), NegotiateError> {
        let us = self.us.clone().with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
        self.initialize_open = true;
        self.send(filter, ClientRequest::InitializeRequest(InitializeRequest::new(us)), INITIALIZE_ID).await
    }

    async fn send<T: Transport<RoleClient>>(
        &self,
        filter: &mut MessageFilter<T>,
        request: ClientRequest,
        id: i64,
    ) -> Result<(), NegotiateError> {
        let message = ClientJsonRpcMessage::request(request, NumberOrString::Number(id));
        filter.send(message).await.map_err(|error| NegotiateError::Send {
            initialize_asked: self.initialize_open,
            why: Box::new(error),
        })
    }
}

/// What the answer to `server/discover` means; nothing if `initialize` is to be asked.
fn discovered(message: ServerJsonRpcMessage) -> Result<Option<Agreement>, NegotiateError> {
    match message {
        ServerJsonRpcMessage::Response(response) => match response.result {
            ServerResult::DiscoverResult(found) => {
                let versions = &found.supported_versions;
                if versions.contains(&ProtocolVersion::LATEST) {
                    let mode =
                        ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
                    let answer = ServerResult::DiscoverResult(found);
                    return Ok(Some(Agreement { mode, version: ProtocolVersion::LATEST, answer }));
                }
                if versions.iter().any(has_initialize) {
                    return Ok(None);
                }
                Err(NegotiateError::Versions(found.supported_versions))
            }
            _ => Err(NegotiateError::Unexpected(Box::new(ServerJsonRpcMessage::Response(response)))),
        },
        ServerJsonRpcMessage::Error(error) => match refused_versions(&error.error) {
            Some(versions) if !versions.iter().any(has_initialize) => Err(NegotiateError::Versions(versions)),
            _ if is_of_current_revision(&error.error) => Err(NegotiateError::Refused(error.error)),
            _ => Ok(None),
        },
        other => Err(NegotiateError::Unexpected(Box::new(other))),
    }
}

fn initialized(message: ServerJsonRpcMessage) -> Result<Agreement, NegotiateError> {
    match message {
        ServerJsonRpcMessage::Response(response)
            if matches!(response.result, ServerResult::InitializeResult(_)) =>
        {
            let version = ProtocolVersion::LATEST_WITH_INITIALIZE;
            Ok(Agreement { mode: ClientLifecycleMode::Initialize, version, answer: response.result })
        }
        ServerJsonRpcMessage::Error(error) => Err(NegotiateError::Refused(error.error)),
        other => Err(NegotiateError::Unexpected(Box::new(other))),
    }
}

/// Whether a message answers our request; some servers give back a number as a text.
fn is_answer_to(message: &ServerJsonRpcMessage, asked: i64) -> bool {
    let id: Option<&RequestId> = match message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    };
    match id {
        Some(NumberOrString::Number(number)) => *number == asked,
        Some(NumberOrString::String(text)) => text.parse() == Ok(asked),
        None => false,
    }
}

/// The revisions that a server names when it refuses the one it was asked in.
fn refused_versions(error: &ErrorData) -> Option<Vec<ProtocolVersion>> {
    if error.code != ErrorCode::UNSUPPORTED_PROTOCOL_VERSION {
        return None;
    }
    let supported = error.data.as_ref()?.get("supported")?.as_array()?;
    let known = |version: &Value| serde_json::from_value::<ProtocolVersion>(version.clone()).ok();
    Some(supported.iter().filter_map(known).collect())
}

/// Whether an error is one that only servers of the current revision give: then `initialize` is useless.
fn is_of_current_revision(error: &ErrorData) -> bool {
    matches!(error.code, ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY | ErrorCode::HEADER_MISMATCH)
}

fn has_initialize(version: &ProtocolVersion) -> bool {
    ProtocolVersion::KNOWN_VERSIONS.contains(version) && version.has_initialize()
}

#[cfg(test)]
#[path = "negotiate_tests.rs"]
mod tests;
