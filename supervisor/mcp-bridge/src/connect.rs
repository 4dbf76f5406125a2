//! Connects to a target and agrees on a revision of MCP, or returns an error that says why that failed.
//!
//! Servers of the current revision answer `server/discover`, those of older ones `initialize`. The bridge first sends
//! `server/discover`; if the server refuses it or does not answer, the bridge sends `initialize`. Unusual servers need
//! a second start: one that exits on an unknown request, and one of the current revision that starts so slowly that it
//! was taken for an old one.

use std::collections::HashMap;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::{ClientCapabilities, ClientConfig, ErrorData, Implementation, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::Transport;
use tokio::time::{Instant, timeout_at};

use crate::command::Target;
use crate::config::Revision;
use crate::http::{self as mcp_http, TlsError};
use crate::server::child::Child;
use crate::server::screen::{NO_ANSWER, News, Screen};
use crate::server::stdio::Stdio;
use crate::text::{MAX_TOLD_BYTES, cut, with_causes};

/// How long `server/discover` may go unanswered before `initialize` is tried. Longer than interpreters take to start on
/// a machine that is busy starting others (5 seconds were too short). Few servers ignore it: those of older revisions
/// answer that the method is unknown.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);
/// How long the exit of a process may take to be noticed after its pipes were closed.
const LAST_NEWS: Duration = Duration::from_secs(1);

/// A connected server.
pub(crate) struct Connected {
    pub(crate) service: RunningService<RoleClient, ClientConfig>,
    pub(crate) news: News,
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
        "the MCP server {server} did not answer `{asked}` within {seconds} s: see that it is one, and give it longer with start_timeout"
    )]
    Silent { server: String, asked: &'static str, seconds: u64 },
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
        known()
    )]
    Revision { server: String, theirs: String },
    #[error("the MCP server {server} does not speak MCP as it should: {why}; report it to its author")]
    Nonsense { server: String, why: String },
}

fn known() -> String {
    ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect::<Vec<_>>().join(", ")
}

/// Connects, until this deadline.
pub(crate) async fn connect(
    target: &Target,
    revision: Revision,
    headers: HashMap<HeaderName, HeaderValue>,
    until: Instant,
) -> Result<Connected, ConnectError> {
    let mut attempt = Attempt { target, headers, server: shown(target), until };
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
                Err(Failed(error, Next::Initialize)) => {
                    tracing::info!("{error}; trying it again with initialize alone");
                    attempt.run(ClientLifecycleMode::Initialize, old).await.map_err(|failed| failed.0)
                }
                Err(Failed(error, Next::Discover)) => {
                    tracing::info!("{error}; trying it again with server/discover alone");
                    attempt.run(discover(), ProtocolVersion::LATEST).await.map_err(|failed| failed.0)
                }
                Err(Failed(error, Next::GiveUp)) => Err(error),
            }
        }
    }
}

/// The server's name in messages.
pub(crate) fn shown(target: &Target) -> String {
    match target {
        Target::Program(program, _) => {
            let name = std::path::Path::new(program).file_name().unwrap_or(program);
            cut(&name.to_string_lossy(), 100)
        }
        Target::Url(address) => format!("at {}", address.place()),
    }
}

/// A failure, and what to try next.
struct Failed(ConnectError, Next);

#[derive(Clone, Copy)]
enum Next {
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
    ) -> Result<Connected, Failed> {
        let server = self.server.clone();
        let news = News::default();
        let left = self.until.saturating_duration_since(Instant::now());
        let patience = match mode {
            // There is no second request.
            ClientLifecycleMode::Discover { .. } => left,
            // When little time is left, the second request must get its share.
            _ => PROBE_PATIENCE.min(left / 3),
        };
        match self.target {
            Target::Program(program, args) => {
                let (child, pipes) = Child::start(program, args)
                    .map_err(|source| Failed(ConnectError::Start { server, source }, Next::GiveUp))?;
                let stdio = Stdio::new(pipes.output, pipes.input, child.closing.clone(), child.gone());
                let screen = Screen::new(stdio, news.clone(), patience);
                match self.begin(screen, mode, version).await {
                    Ok(service) => Ok(Connected { service, news, child: Some(child) }),
                    Err(failed) => {
                        let gone =
                            matches!(failed.0, ConnectError::Ended { .. } | ConnectError::Unreachable { .. });
                        let how = if gone { child.ended_within(LAST_NEWS).await } else { None };
                        child.closing.close();
                        Err(self.with_exit(failed, how))
                    }
                }
            }
            Target::Url(address) => {
                let transport = mcp_http::transport(address, self.headers.clone())
                    .map_err(|why| Failed(ConnectError::Tls { server, why }, Next::GiveUp))?;
                let screen = Screen::new(transport, news.clone(), patience);
                let service = self.begin(screen, mode, version).await?;
                Ok(Connected { service, news, child: None })
            }
        }
    }

    async fn begin<T: Transport<RoleClient> + 'static>(
        &self,
        screen: Screen<T>,
        mode: ClientLifecycleMode,
        version: ProtocolVersion,
    ) -> Result<RunningService<RoleClient, ClientConfig>, Failed> {
        let server = self.server.clone();
        let asked = match mode {
            ClientLifecycleMode::Discover { .. } => "server/discover",
            _ => "initialize",
        };
        let begun = Instant::now();
        let us = Implementation::new("talon-mcp-bridge", env!("CARGO_PKG_VERSION"));
        let config = ClientConfig::new(ClientCapabilities::default(), us).with_protocol_version(version);
        let service = match timeout_at(self.until, config.serve_with_lifecycle(screen, mode)).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(self.judge(error)),
            Err(_) => {
                let seconds = begun.elapsed().as_secs().max(1);
                return Err(Failed(ConnectError::Silent { server, asked, seconds }, Next::GiveUp));
            }
        };
        match service.peer_info() {
            Some(info) if ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version) => Ok(service),
            Some(info) => {
                let theirs = format!("revision {:?}", cut(info.protocol_version.as_str(), 100));
                Err(Failed(ConnectError::Revision { server, theirs }, Next::GiveUp))
            }
            None => {
                let why = "it says nothing about itself".to_owned();
                Err(Failed(ConnectError::Nonsense { server, why }, Next::GiveUp))
            }
        }
    }

    fn judge(&self, error: ClientInitializeError) -> Failed {
        use ClientInitializeError as E;

        let server = self.server.clone();
        let refused = |error: &ErrorData, server| ConnectError::Refused {
            server,
            code: error.code.0,
            message: cut(&error.message, MAX_TOLD_BYTES),
        };
        match error {
            E::JsonRpcError(error) => Failed(refused(&error, server), Next::GiveUp),
            E::LegacyFallbackFailed { discover, fallback } => {
                let silent = matches!(&*discover, E::JsonRpcError(error) if error.message == NO_ANSWER);
                match *fallback {
                    E::JsonRpcError(error) if silent => Failed(refused(&error, server), Next::Discover),
                    other => self.judge(other),
                }
            }
            E::NoCompatibleProtocolVersion { server_supported, .. } => {
                let theirs: Vec<_> = server_supported.iter().take(8).map(|v| cut(v.as_str(), 40)).collect();
                let theirs = if theirs.is_empty() {
                    "no revision".to_owned()
                } else {
                    format!("only {}", theirs.join(", "))
                };
                Failed(ConnectError::Revision { server, theirs }, Next::GiveUp)
            }
            E::ConnectionClosed(during) => {
                let next = if during.contains("discover") { Next::Initialize } else { Next::GiveUp };
                let how = "closed its output, and still runs,".to_owned();
                Failed(ConnectError::Ended { server, how }, next)
            }
            E::TransportError { error, context } => {
                let next = if context.contains("discover") { Next::Initialize } else { Next::GiveUp };
                let next = if matches!(self.target, Target::Url(_)) { Next::GiveUp } else { next };
                let why = with_causes(error.error.as_ref());
                Failed(ConnectError::Unreachable { server, why }, next)
            }
            other => {
                let why = cut(&other.to_string(), 300);
                Failed(ConnectError::Nonsense { server, why }, Next::GiveUp)
            }
        }
    }

    /// A closed pipe explains little; the exit status of the process explains more.
    fn with_exit(&self, Failed(error, next): Failed, how: Option<String>) -> Failed {
        match (error, how) {
            (ConnectError::Ended { server, .. } | ConnectError::Unreachable { server, .. }, Some(how)) => {
                Failed(ConnectError::Ended { server, how }, next)
            }
            (error, _) => Failed(error, next),
        }
    }
}
