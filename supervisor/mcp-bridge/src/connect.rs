//! Connects to a target and agrees on a revision of MCP, or returns an error that says why that failed.
//!
//! Servers of the current revision answer `server/discover`, those of older ones `initialize`. The bridge
//! first sends `server/discover`; if the server refuses it or does not answer, the bridge sends `initialize`.
//! Unusual servers need a second start: one that exits on an unknown request, and one of the current revision
//! that starts so slowly that it was taken for an old one.

use std::collections::HashMap;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::{ClientCapabilities, ClientConfig, ErrorData, Implementation, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::Transport;
use talon_bridge::text::{MAX_ERROR_TEXT_BYTES, cut};
use talon_error_chain::error_chain;
use tokio::time::{Instant, timeout_at};

use crate::command::Target;
use crate::config::Revision;
use crate::http::{self as mcp_http, TlsError};
use crate::server::child::Child;
use crate::server::message_filter::{MessageFilter, NO_ANSWER, Updates};
use crate::server::stdio::Stdio;

/// How long `server/discover` may go unanswered before `initialize` is tried. Longer than interpreters take
/// to start on a machine that is busy starting others (5 seconds were too short). Few servers ignore it:
/// those of older revisions answer that the method is unknown.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the exit of a process may take to be noticed after its pipes were closed.
const EXIT_REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// A connected server.
pub(crate) struct Connected {
    pub(crate) service: RunningService<RoleClient, ClientConfig>,
    pub(crate) news: Updates,
    /// Its process, if we started one.
    pub(crate) child: Option<Child>,
}

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
    #[error("the MCP server {server} cannot be reached: {why}")]
    Unreachable { server: String, why: String },
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

/// Connects, until this deadline.
pub(crate) async fn connect(
    target: &Target,
    revision: Revision,
    headers: HashMap<HeaderName, HeaderValue>,
    until: Instant,
) -> Result<Connected, ConnectError> {
    let mut attempt = Attempt { target, headers, server: server_name(target), until };
    let discover = || ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] };
    match revision {
        Revision::Only(version) if version.has_initialize() => {
            attempt.run(ClientLifecycleMode::Initialize, version).await.map_err(|failed| failed.0)
        }
        Revision::Only(_) => {
            attempt.run(discover(), ProtocolVersion::LATEST).await.map_err(|failed| failed.0)
        }
        Revision::Auto => {
            let old = ProtocolVersion::LATEST_WITH_INITIALIZE;
            let auto = ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(old.clone()),
            };
            match attempt.run(auto, old.clone()).await {
                Ok(connected) => Ok(connected),
                Err(AttemptError(error, Fallback::Initialize)) => {
                    tracing::info!("{error}; trying it again with initialize alone");
                    attempt.run(ClientLifecycleMode::Initialize, old).await.map_err(|failed| failed.0)
                }
                Err(AttemptError(error, Fallback::Discover)) => {
                    tracing::info!("{error}; trying it again with server/discover alone");
                    attempt.run(discover(), ProtocolVersion::LATEST).await.map_err(|failed| failed.0)
                }
                Err(AttemptError(error, Fallback::GiveUp)) => Err(error),
            }
        }
    }
}

/// The server's name in messages.
pub(crate) fn server_name(target: &Target) -> String {
    match target {
        Target::Program(program, _) => {
            let name = std::path::Path::new(program).file_name().unwrap_or(program);
            cut(&name.to_string_lossy(), 100)
        }
        Target::Url(address) => format!("at {}", address.authority()),
    }
}

/// A failure, and what to try next.
struct AttemptError(ConnectError, Fallback);

#[derive(Clone, Copy)]
enum Fallback {
    GiveUp,
    Initialize,
    Discover,
}

struct Attempt<'a> {
    target: &'a Target,
    headers: HashMap<HeaderName, HeaderValue>,
    server: String,
    until: Instant,
}

impl Attempt<'_> {
    async fn run(
        &mut self,
        mode: ClientLifecycleMode,
        version: ProtocolVersion,
    ) -> Result<Connected, AttemptError> {
        let server = self.server.clone();
        let news = Updates::default();
        let left = self.until.saturating_duration_since(Instant::now());
        let patience = match mode {
            // There is no second request.
            ClientLifecycleMode::Discover { .. } => left,
            // When little time is left, the second request must get its share.
            _ => PROBE_TIMEOUT.min(left / 3),
        };
        match self.target {
            Target::Program(program, args) => {
                let (child, pipes) = Child::start(program, args).map_err(|source| {
                    AttemptError(ConnectError::Start { server, source }, Fallback::GiveUp)
                })?;
                let stdio = Stdio::new(pipes.output, pipes.input, child.closing.clone(), child.exited());
                let screen = MessageFilter::new(stdio, news.clone(), patience);
                match self.start_client(screen, mode, version).await {
                    Ok(service) => Ok(Connected { service, news, child: Some(child) }),
                    Err(failed) => {
                        let gone =
                            matches!(failed.0, ConnectError::Ended { .. } | ConnectError::Unreachable { .. });
                        let how = if gone { child.ended_within(EXIT_REPORT_TIMEOUT).await } else { None };
                        child.closing.close();
                        Err(self.with_exit(failed, how))
                    }
                }
            }
            Target::Url(address) => {
                let transport = mcp_http::transport(address, self.headers.clone())
                    .map_err(|why| AttemptError(ConnectError::Tls { server, why }, Fallback::GiveUp))?;
                let screen = MessageFilter::new(transport, news.clone(), patience);
                let service = self.start_client(screen, mode, version).await?;
                Ok(Connected { service, news, child: None })
            }
        }
    }

    async fn start_client<T: Transport<RoleClient> + 'static>(
        &self,
        screen: MessageFilter<T>,
        mode: ClientLifecycleMode,
        version: ProtocolVersion,
    ) -> Result<RunningService<RoleClient, ClientConfig>, AttemptError> {
        let server = self.server.clone();
        let method = match mode {
            ClientLifecycleMode::Discover { .. } => "server/discover",
            _ => "initialize",
        };
        let begun = Instant::now();
        let us = Implementation::new("talon-mcp-bridge", env!("CARGO_PKG_VERSION"));
        let config = ClientConfig::new(ClientCapabilities::default(), us).with_protocol_version(version);
        let service = match timeout_at(self.until, config.serve_with_lifecycle(screen, mode)).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(self.classify(error)),
            Err(_) => {
                let seconds = begun.elapsed().as_secs().max(1);
                return Err(AttemptError(
                    ConnectError::Timeout { server, method, seconds },
                    Fallback::GiveUp,
                ));
            }
        };
        match service.peer_info() {
            Some(info) if ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version) => Ok(service),
            Some(info) => {
                let theirs = format!("revision {:?}", cut(info.protocol_version.as_str(), 100));
                Err(AttemptError(ConnectError::Revision { server, theirs }, Fallback::GiveUp))
            }
            None => {
                let why = "it says nothing about itself".to_owned();
                Err(AttemptError(ConnectError::ProtocolViolation { server, why }, Fallback::GiveUp))
            }
        }
    }

    fn classify(&self, error: ClientInitializeError) -> AttemptError {
        use ClientInitializeError as E;

        let server = self.server.clone();
        let refused = |error: &ErrorData, server| ConnectError::Refused {
            server,
            code: error.code.0,
            message: cut(&error.message, MAX_ERROR_TEXT_BYTES),
        };
        match error {
            E::JsonRpcError(error) => AttemptError(refused(&error, server), Fallback::GiveUp),
            E::LegacyFallbackFailed { discover, fallback } => {
                let silent = matches!(&*discover, E::JsonRpcError(error) if error.message == NO_ANSWER);
                match *fallback {
                    E::JsonRpcError(error) if silent => {
                        AttemptError(refused(&error, server), Fallback::Discover)
                    }
                    other => self.classify(other),
                }
            }
            E::NoCompatibleProtocolVersion { server_supported, .. } => {
                let theirs: Vec<_> = server_supported.iter().take(8).map(|v| cut(v.as_str(), 40)).collect();
                let theirs = if theirs.is_empty() {
                    "no revision".to_owned()
                } else {
                    format!("only {}", theirs.join(", "))
                };
                AttemptError(ConnectError::Revision { server, theirs }, Fallback::GiveUp)
            }
            E::ConnectionClosed(during) => {
                let next = if during.contains("discover") { Fallback::Initialize } else { Fallback::GiveUp };
                let how = "closed its output, and still runs,".to_owned();
                AttemptError(ConnectError::Ended { server, how }, next)
            }
            E::TransportError { error, context } => {
                let next = if context.contains("discover") { Fallback::Initialize } else { Fallback::GiveUp };
                let next = if matches!(self.target, Target::Url(_)) { Fallback::GiveUp } else { next };
                let why = error_chain(error.error.as_ref());
                AttemptError(ConnectError::Unreachable { server, why }, next)
            }
            other => {
                let why = cut(&other.to_string(), 300);
                AttemptError(ConnectError::ProtocolViolation { server, why }, Fallback::GiveUp)
            }
        }
    }

    /// A closed pipe explains little; the exit status of the process explains more.
    fn with_exit(&self, AttemptError(error, next): AttemptError, how: Option<String>) -> AttemptError {
        match (error, how) {
            (ConnectError::Ended { server, .. } | ConnectError::Unreachable { server, .. }, Some(how)) => {
                AttemptError(ConnectError::Ended { server, how }, next)
            }
            (error, _) => AttemptError(error, next),
        }
    }
}
