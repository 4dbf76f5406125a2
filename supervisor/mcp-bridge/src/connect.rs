//! Connects to a target and agrees on a revision of MCP, or returns an error that says why that failed.
//!
//! One process is enough to find out what a server speaks ([`negotiate`]), with one exception: a server that
//! exits on an unknown request is started a second time, and asked `initialize` alone. An address that takes
//! no messages by `POST` is tried as one of the HTTP+SSE transport of 2024-11-05.

use std::collections::HashMap;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::{ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::Transport;

use talon_bridge::text::cut;
use talon_error_chain::error_chain;
use tokio::time::{Instant, timeout_at};

use crate::command::Target;
use crate::config::Revision;
use crate::connect_error::ConnectError;
use crate::elicitation::{BridgeClient, Questions};
use crate::http::{self as mcp_http, HttpServer, Login};
use crate::negotiate::{NegotiateError, negotiate};
use crate::roots::Roots;
use crate::sampling::Sampling;
use crate::server::child::Child;
use crate::server::message_filter::{MessageFilter, Updates};
use crate::server::stdio::Stdio;

/// How long `server/discover` may go unanswered before `initialize` is asked as well. Longer than interpreters
/// take to start on a machine that is busy starting others (5 seconds were too short). Few servers ignore it:
/// those of older revisions answer that the method is unknown.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the exit of a process may take to be noticed after its pipes were closed.
const EXIT_REPORT_TIMEOUT: Duration = Duration::from_secs(1);

/// A connected server.
pub(crate) struct Connected {
    pub(crate) service: RunningService<RoleClient, BridgeClient>,
    pub(crate) news: Updates,
    pub(crate) roots: Roots,
    pub(crate) questions: Questions,
    pub(crate) sampling: Sampling,
    /// Its process, if we started one.
    pub(crate) child: Option<Child>,
}

/// Connects, until this deadline.
pub(crate) async fn connect(
    target: &Target,
    revision: Revision,
    headers: HashMap<HeaderName, HeaderValue>,
    login: Login,
    (roots, sampling): (Roots, Sampling),
    until: Instant,
) -> Result<Connected, ConnectError> {
    let attempt = Attempt { server: server_name(target), roots, sampling, until };
    let opening = Opening::of(revision);
    match target {
        Target::Program(program, args) => {
            let start = || Child::start(program, args);
            match attempt.process(start(), opening.clone()).await {
                Err(Failed { error, at_probe: true }) if matches!(opening, Opening::Negotiate) => {
                    tracing::info!("{error}; trying it again with initialize alone");
                    attempt.process(start(), Opening::initialize()).await.map_err(|failed| failed.error)
                }
                connected => connected.map_err(|failed| failed.error),
            }
        }
        Target::Url(address) => {
            let server = HttpServer::new(address, headers, login)
                .map_err(|why| ConnectError::Tls { server: attempt.server.clone(), why })?;
            let connected = attempt.open(server.transport(), opening).await;
            let connected = match server.refused_post() {
                Some(status) if connected.is_err() => {
                    tracing::info!(
                        "it refuses messages (HTTP {status}): trying the HTTP+SSE transport of 2024-11-05"
                    );
                    attempt.legacy(&server, connected).await
                }
                _ => connected.map_err(|failed| failed.error),
            };
            connected.map_err(|error| if server.is_away() { error.into_outage() } else { error })
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

/// How a connection begins.
#[derive(Clone)]
enum Opening {
    /// The revision is found out.
    Negotiate,
    /// It is this one.
    Only { mode: ClientLifecycleMode, version: ProtocolVersion },
}

impl Opening {
    fn of(revision: Revision) -> Self {
        match revision {
            Revision::Auto => Self::Negotiate,
            Revision::Only(version) if version.has_initialize() => {
                Self::Only { mode: ClientLifecycleMode::Initialize, version }
            }
            Revision::Only(version) => {
                let mode = ClientLifecycleMode::Discover { preferred_versions: vec![version.clone()] };
                Self::Only { mode, version }
            }
        }
    }

    fn initialize() -> Self {
        let version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        Self::Only { mode: ClientLifecycleMode::Initialize, version }
    }
}

/// Why an attempt failed.
struct Failed {
    error: ConnectError,
    /// The connection ended when only `server/discover` had been asked.
    at_probe: bool,
}

struct Attempt {
    server: String,
    roots: Roots,
    sampling: Sampling,
    until: Instant,
}

impl Attempt {
    async fn process(
        &self,
        started: std::io::Result<(Child, crate::server::child::Pipes)>,
        opening: Opening,
    ) -> Result<Connected, Failed> {
        let (child, pipes) = started.map_err(|source| Failed {
            error: ConnectError::Start { server: self.server.clone(), source },
            at_probe: false,
        })?;
        let stdio = Stdio::new(pipes.output, pipes.input, child.closing.clone(), child.exited());
        match self.open(stdio, opening).await {
            Ok(connected) => Ok(Connected { child: Some(child), ..connected }),
            Err(Failed { error, at_probe }) => {
                let gone = matches!(error, ConnectError::Ended { .. } | ConnectError::Unreachable { .. });
                let how = if gone { child.ended_within(EXIT_REPORT_TIMEOUT).await } else { None };
                child.closing.close();
                let error = error.with_exit(how);
                if child.import_failure.is_seen() {
                    // Another start would fail in the same way.
                    return Err(Failed { error: error.into_import_failure(), at_probe: false });
                }
                Err(Failed { error, at_probe })
            }
        }
    }

    /// Tries the older transport. If that fails, too, the first error says more: few servers have it.
    async fn legacy(
        &self,
        server: &HttpServer,
        first: Result<Connected, Failed>,
    ) -> Result<Connected, ConnectError> {
        let transport = match timeout_at(self.until, server.legacy_transport()).await {
            Ok(Ok(transport)) => transport,
            Ok(Err(mcp_http::LegacyError::NoEndpoint(_))) | Err(_) => {
                return first.map_err(|failed| failed.error);
            }
            Ok(Err(error)) => {
                let why = error_chain(&error);
                return Err(ConnectError::Unreachable { server: self.server.clone(), why });
            }
        };
        self.open(transport, Opening::initialize()).await.map_err(|failed| failed.error)
    }

    async fn open<T: Transport<RoleClient> + 'static>(
        &self,
        transport: T,
        opening: Opening,
    ) -> Result<Connected, Failed> {
        let begun = Instant::now();
        let failed = |error: ConnectError| Failed { error, at_probe: false };
        let seconds = || begun.elapsed().as_secs().max(1);
        let news = Updates::default();
        let mut filter = MessageFilter::new(transport, news.clone())
            .with_roots(self.roots.clone())
            .with_sampling(self.sampling.is_granted());
        let us = Implementation::new("talon-mcp-bridge", env!("CARGO_PKG_VERSION"));
        let us = ClientConfig::new(self.roots.capabilities(self.sampling.is_granted()), us);
        let (filter, mode, version) = match opening {
            Opening::Only { mode, version } => (filter, mode, version),
            Opening::Negotiate => {
                let left = self.until.saturating_duration_since(begun);
                // When little time is left, the second request must get its share.
                let patience = PROBE_TIMEOUT.min(left / 3);
                let agreement = Box::pin(negotiate(&mut filter, &us, patience, self.until)).await;
                let agreement = agreement.map_err(|error| Failed {
                    at_probe: matches!(
                        error,
                        NegotiateError::Closed { initialize_asked: false }
                            | NegotiateError::Send { initialize_asked: false, .. }
                    ),
                    error: ConnectError::of_negotiation(self.server.clone(), error, seconds()),
                })?;
                (filter.answer_with(agreement.answer), agreement.mode, agreement.version)
            }
        };
        let method = match mode {
            ClientLifecycleMode::Discover { .. } => "server/discover",
            _ => "initialize",
        };
        let questions = Questions::default();
        let (sampling, config) = (self.sampling.clone(), us.with_protocol_version(version));
        let client = BridgeClient { config, questions: questions.clone(), sampling: sampling.clone() };
        let serving = client.serve_with_lifecycle(filter, mode);
        let service = match timeout_at(self.until, Box::pin(serving)).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(failed(ConnectError::of_library(self.server.clone(), error))),
            Err(_) => {
                let server = self.server.clone();
                return Err(failed(ConnectError::Timeout { server, method, seconds: seconds() }));
            }
        };
        let server = self.server.clone();
        match service.peer_info() {
            Some(info) if ProtocolVersion::KNOWN_VERSIONS.contains(&info.protocol_version) => {
                let roots = self.roots.clone();
                Ok(Connected { service, news, roots, questions, sampling, child: None })
            }
            Some(info) => {
                let theirs = format!("revision {:?}", cut(info.protocol_version.as_str(), 100));
                Err(failed(ConnectError::Revision { server, theirs }))
            }
            None => {
                let why = "it says nothing about itself".to_owned();
                Err(failed(ConnectError::ProtocolViolation { server, why }))
            }
        }
    }
}
