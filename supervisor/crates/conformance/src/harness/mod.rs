//! The test harness: what is known about the plugin, and a serving process, which is replaced after a check
//! spoilt it.

mod call_result;
pub(crate) mod targets;

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use serde_json::{Map, Value};
use talon_plugin::logs::Stream;
use talon_plugin::probe::{CallOptions, ListeningSocket, Probe, ProbeError, Prober, RawClient, Stage};
use talon_plugin_client::ExecuteError;
use talon_plugin_client::capability::MAX_MESSAGE_BYTES;
use talon_plugin_client::handshake::Handshake;
use talon_plugin_config::spec::{Dialect, PluginSpec};
use talon_proto::plugin::{PluginCapabilities, PluginInitRequest};
use talon_sanitize::{Raw, Sanitized, sanitized};
use tonic::Code;

pub(crate) use self::call_result::CallResult;
use self::targets::Targets;
use crate::options::Options;

/// The time limit for one call of an action: long enough for anything quick, since the arguments are made up.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// The time limit for an answer about the plugin itself.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the exit of a process may take to be noticed after its connection broke.
const EXIT_WAIT: Duration = Duration::from_secs(1);
/// The largest accepted answer that has no content, in bytes.
const SMALL_ANSWER_BYTES: usize = 64 << 10;
/// The longest text of the plugin in a finding, in bytes.
pub(crate) const SHOWN_BYTES: usize = 200;

/// The result of one check, before it is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    Pass(Sanitized),
    Fail(Sanitized),
    Warn(Sanitized),
    Skip(Sanitized),
}

impl Finding {
    pub(crate) fn pass() -> Self {
        Self::Pass(Sanitized::default())
    }
}

/// A process after its handshake, with a connection.
pub(crate) struct Session {
    pub(crate) probe: Probe,
    pub(crate) handshake: Handshake,
    pub(crate) client: RawClient,
}

/// The result of Init.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InitResult {
    Done,
    /// The plugin does not implement Init.
    NotImplemented,
    /// A gRPC error other than UNIMPLEMENTED, as text.
    Refused(Sanitized),
    /// No answer came, or the process exited.
    Broken(Sanitized),
}

/// What the first start showed.
#[derive(Default)]
pub(crate) struct Facts {
    /// Why the start failed before a connection.
    pub(crate) problem: Option<ProbeError>,
    pub(crate) handshake: Option<Handshake>,
    pub(crate) socket: Option<ListeningSocket>,
    /// The number of lines on standard output before the handshake, and the first of them.
    pub(crate) stray: (usize, Sanitized),
    pub(crate) init: Option<InitResult>,
    /// The undecoded declaration, or why there is none.
    pub(crate) declaration: Option<Result<Bytes, Sanitized>>,
    pub(crate) capabilities: Option<PluginCapabilities>,
    /// Whether its health service reported SERVING, if it was asked.
    pub(crate) healthy: Option<bool>,
    /// The jail's report.
    pub(crate) jail: Option<talon_jail::Report>,
}

pub(crate) struct Harness<'r> {
    pub(crate) prober: &'r Prober,
    pub(crate) spec: PluginSpec,
    pub(crate) options: &'r Options,
    pub(crate) facts: Facts,
    pub(crate) targets: Targets,
    /// Dropped lines of all processes so far.
    pub(crate) dropped_lines: u64,
    session: Option<Session>,
}

impl<'r> Harness<'r> {
    pub(crate) fn new(prober: &'r Prober, spec: PluginSpec, options: &'r Options) -> Self {
        Self {
            prober,
            spec,
            options,
            facts: Facts::default(),
            targets: Targets::default(),
            dropped_lines: 0,
            session: None,
        }
    }

    /// Starts the plugin for the first time and collects facts. Nothing is judged yet.
    ///
    /// # Errors
    /// When it cannot be started on this machine, which says nothing about the plugin.
    pub(crate) async fn start(&mut self) -> Result<(), ProbeError> {
        let mut probe = match self.prober.start(&self.spec).await {
            Ok(probe) => probe,
            Err(problem) if problem.stage <= Stage::Jail => return Err(problem),
            Err(problem) => {
                self.facts.problem = Some(problem);
                return Ok(());
            }
        };
        self.facts.jail = Some(probe.report().clone());
        let shaken = probe.handshake().await;
        let first = stdout_lines(&probe).into_iter().next();
        self.facts.stray = (probe.stray_lines(), first.unwrap_or_default());
        let handshake = match shaken {
            Ok(handshake) => handshake,
            Err(problem) => {
                self.discard(probe).await;
                self.facts.problem = Some(problem);
                return Ok(());
            }
        };
        if probe.is_framed(&handshake).await.unwrap_or(false) {
            self.discard(probe).await;
            // As a host does: it is started again behind the bridge.
            self.spec.dialect = Dialect::OpenTalonV0;
            return Box::pin(self.start()).await;
        }
        self.facts.socket = Some(probe.socket(&handshake));
        self.facts.handshake = Some(handshake.clone());
        let wire = match probe.connect(&handshake).await {
            Ok(wire) => wire,
            Err(problem) => {
                self.discard(probe).await;
                self.facts.problem = Some(problem);
                return Ok(());
            }
        };
        let session = Session { probe, handshake, client: wire };
        let init = self.call_init(&session, self.spec.config.clone()).await;
        let serves = !matches!(init, InitResult::Broken(_));
        self.facts.init = Some(init);
        if serves {
            let declared = self.call_capabilities(&session).await;
            let decoded =
                declared.as_ref().ok().and_then(|bytes| PluginCapabilities::decode(bytes.clone()).ok());
            self.targets = Targets::select(decoded.as_ref(), self.options);
            self.facts.capabilities = decoded;
            self.facts.declaration = Some(declared);
        }
        self.session = Some(session);
        Ok(())
    }

    /// Starts and connects to another process, with the spec changed by `change`.
    pub(crate) async fn start_session(
        &self,
        change: impl FnOnce(&mut PluginSpec),
    ) -> Result<Session, ProbeError> {
        let mut spec = self.spec.clone();
        change(&mut spec);
        let mut probe = self.prober.start(&spec).await?;
        let handshake = probe.handshake().await?;
        let wire = probe.connect(&handshake).await?;
        Ok(Session { probe, handshake, client: wire })
    }

    /// The serving process. If it was discarded or has exited, a new one is started and initialised.
    pub(crate) async fn ensure_session(&mut self) -> Result<&Session, Finding> {
        if let Some(finding) = self.skip_reason() {
            return Err(finding);
        }
        let ended = match &self.session {
            Some(session) => session.probe.wait_for_exit(Duration::ZERO).await.is_some(),
            None => true,
        };
        if ended {
            self.drop_session().await;
            let again = |problem: &ProbeError| {
                Finding::Fail(sanitized!("it did not start once more: {}", problem.text))
            };
            let session = self.start_session(|_| {}).await.map_err(|problem| again(&problem))?;
            match self.call_init(&session, self.spec.config.clone()).await {
                InitResult::Done | InitResult::NotImplemented => {}
                InitResult::Refused(text) | InitResult::Broken(text) => {
                    session.probe.kill().await;
                    return Err(Finding::Fail(sanitized!("it did not start once more: Init: {}", text)));
                }
            }
            self.session = Some(session);
        }
        match &self.session {
            Some(session) => Ok(session),
            None => Err(Finding::Skip("there is no process".into())),
        }
    }

    /// The current process, if there is one, even if it has exited.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Why checks that need a serving plugin are skipped.
    pub(crate) fn skip_reason(&self) -> Option<Finding> {
        let skip = |id: &'static str| Some(Finding::Skip(sanitized!("it does not get that far: see {}", id)));
        if let Some(problem) = &self.facts.problem {
            return skip(crate::failed_stage::check_for_stage(problem.stage));
        }
        match (&self.facts.init, &self.facts.declaration) {
            (Some(InitResult::Refused(_) | InitResult::Broken(_)), _) => skip("init.settings"),
            (_, Some(Err(_)) | None) => skip("capabilities.answered"),
            _ => None,
        }
    }

    /// Discards the serving process; the next check that needs one gets a new one.
    pub(crate) async fn drop_session(&mut self) {
        if let Some(session) = self.session.take() {
            self.discard(session.probe).await;
        }
    }

    /// Kills a process and counts its dropped lines.
    pub(crate) async fn discard(&mut self, probe: Probe) {
        self.dropped_lines += probe.dropped_lines();
        probe.kill().await;
    }

    pub(crate) async fn call_init(&self, session: &Session, config: Map<String, Value>) -> InitResult {
        let config_json = Value::Object(config).to_string();
        let message = PluginInitRequest { config_json }.encode_to_vec().into();
        let patience = session.probe.remaining_start_time().max(ANSWER_TIMEOUT);
        let call =
            CallOptions { timeout: None, response_timeout: patience, max_answer_bytes: SMALL_ANSWER_BYTES };
        match session.client.call("Init", message, call).await {
            Ok(_) => InitResult::Done,
            Err(ExecuteError::Status { code: Code::Unimplemented, .. }) => InitResult::NotImplemented,
            Err(ExecuteError::Status { code, message }) => {
                InitResult::Refused(describe_status(code, &message))
            }
            Err(error) => InitResult::Broken(self.describe_failure(session, &error).await),
        }
    }

    /// Calls Capabilities and returns the undecoded answer.
    pub(crate) async fn call_capabilities(&self, session: &Session) -> Result<Bytes, Sanitized> {
        let patience = session.probe.remaining_start_time().max(ANSWER_TIMEOUT);
        let call =
            CallOptions { timeout: None, response_timeout: patience, max_answer_bytes: MAX_MESSAGE_BYTES };
        match session.client.call("Capabilities", Bytes::new(), call).await {
            Ok(bytes) => Ok(bytes),
            Err(ExecuteError::Status { code, message }) => Err(describe_status(code, &message)),
            Err(error) => Err(self.describe_failure(session, &error).await),
        }
    }

    /// Whether it still answers; if not, the reason.
    pub(crate) async fn still_serves(&self, session: &Session) -> Result<(), Sanitized> {
        let call = CallOptions {
            timeout: None,
            response_timeout: ANSWER_TIMEOUT,
            max_answer_bytes: MAX_MESSAGE_BYTES,
        };
        match session.client.call("Capabilities", Bytes::new(), call).await {
            Ok(_) | Err(ExecuteError::Status { .. }) => Ok(()),
            Err(error) => Err(self.describe_failure(session, &error).await),
        }
    }

    /// Describes a failed call; if the process exited, how it did.
    pub(crate) async fn describe_failure(&self, session: &Session, error: &ExecuteError) -> Sanitized {
        let broke = matches!(error, ExecuteError::Transport(_) | ExecuteError::TimedOut { .. });
        let exit = match broke {
            true => session.probe.wait_for_exit(EXIT_WAIT).await,
            false => None,
        };
        match (exit, session.probe.last_line()) {
            (Some(exit), Some(words)) => {
                sanitized!("the process ended with {}; its last words: {}", exit, words)
            }
            (Some(exit), None) => sanitized!("the process ended with {} and said nothing", exit),
            (None, _) => Raw::of(error).line_within(2 * SHOWN_BYTES),
        }
    }

    /// Whether a bridge does the handshake for it.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.facts.handshake.as_ref().map(|handshake| handshake.dialect)
    }

    /// Whether a bridge shakes hands for it.
    pub(crate) fn is_bridged(&self) -> bool {
        self.spec.url.is_some()
            || self.spec.foreign_service.is_some()
            || matches!(self.spec.dialect, Dialect::Mcp | Dialect::OpenTalonV0)
    }
}

/// A gRPC error in words.
pub(crate) fn describe_status(code: Code, message: &Sanitized) -> Sanitized {
    let code = Raw::from(format!("{code:?}")).line();
    match message.is_empty() {
        true => sanitized!("gRPC error {} without a text", code),
        false => sanitized!("gRPC error {}: {}", code, Raw::from(message.as_str()).line_within(SHOWN_BYTES)),
    }
}

/// The lines on standard output that are kept, but for the handshake.
pub(crate) fn stdout_lines(probe: &Probe) -> Vec<Sanitized> {
    let lines = probe.output().into_iter().filter(|line| line.stream == Stream::Stdout);
    lines.map(|line| Raw::from(line.text).line_within(SHOWN_BYTES)).collect()
}
