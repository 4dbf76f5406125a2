//! The control protocol with a process of `talon-agent`.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use talon_control::{ControlError, memfd};
use talon_listen::LogThrottle;
use talon_proto::agent::{
    AttachModel, Configure, FromAgent, GetStatusResponse, HostConnection, NeedHost, Operation, Ready,
    Refused, ToAgent, from_agent, to_agent,
};
use talon_proto::state::Open;
use tokio_util::task::AbortOnDropHandle;

use super::endpoint::HostLink;
use super::model_sockets::ModelSocketSet;
use super::pending_client::{OWN_WAITING, PendingClient};
use super::report::{AgentReport, MAX_COMPLAINTS};
use super::trace;
use crate::audit::{AgentProcess, Audit};
use crate::service::{
    BoundedQueue, ControlSocket, ManagedService, ManagedServiceStatus, ServiceHandle, sanitize_report,
};

/// The wait before a failed message is retried: a shortage of descriptors ends as connections end.
const RETRY_AFTER: Duration = Duration::from_secs(1);

static RESOURCE_SHORTAGE: LogThrottle = LogThrottle::new();
static UNKNOWN_OPERATION: LogThrottle = LogThrottle::new();

/// The agent.
pub(super) struct AgentService {
    open: Open,
    settings: Mutex<Settings>,
    clients: BoundedQueue<PendingClient>,
    pub(super) host_link: HostLink,
    pub(super) models: ModelSocketSet,
    /// The latest report of the current process.
    report: Mutex<Option<AgentReport>>,
    /// Where operations of clients are recorded.
    audit: OnceLock<Audit>,
    /// The directory that is the agent's own.
    home: OnceLock<PathBuf>,
}

/// The encoded settings for the agent.
#[derive(Clone, Default)]
struct Settings {
    /// How often they were set. At 0 the agent receives no settings.
    version: u64,
    /// The settings, and the extensions after them.
    bytes: Arc<Vec<u8>>,
    /// How many of the bytes are extensions.
    extensions_bytes: usize,
}

/// What the current process has received.
#[derive(Default)]
pub(super) struct SessionState {
    /// The process itself.
    process: AgentProcess,
    /// The version of the settings that was sent.
    settings: u64,
    /// It reported that it is ready, so it may receive clients.
    ready: bool,
    /// The id of its latest unanswered request for a connection to the host. It has one connection, so
    /// earlier requests are obsolete.
    needs_host: Option<u64>,
    /// The sockets for completions, with their grants.
    models: BTreeMap<u64, AttachModel>,
    /// The pending retry after a failed message.
    retry: Option<AbortOnDropHandle<()>>,
}

impl AgentService {
    /// With so many clients at once.
    pub(super) fn new(open: Open, clients: u32) -> Self {
        let clients = usize::try_from(clients).unwrap_or(usize::MAX);
        Self {
            open,
            settings: Mutex::default(),
            clients: BoundedQueue::new(clients.saturating_add(OWN_WAITING)),
            host_link: HostLink::default(),
            models: ModelSocketSet::default(),
            report: Mutex::default(),
            audit: OnceLock::new(),
            home: OnceLock::new(),
        }
    }

    /// Sets where operations of clients are recorded. The first one stays.
    pub(super) fn set_audit(&self, audit: Audit) {
        let _first_stays = self.audit.set(audit);
    }

    /// Sets the directory that is the agent's own. The first one stays.
    pub(super) fn set_home(&self, home: PathBuf) {
        let _first_stays = self.home.set(home);
    }

    /// Records what a client of the agent changed, or the agent by itself.
    fn record_operation(&self, agent: AgentProcess, operation: &Operation) {
        let Some(audit) = self.audit.get() else { return };
        if let Err(error) = audit.agent_operation(agent, operation)
            && let Some(unsaid) = UNKNOWN_OPERATION.permit()
        {
            tracing::warn!(%error, unsaid, "the agent reports an operation that this version does not know");
        }
    }

    /// The latest report; `None` until there is one.
    pub(super) fn report(&self) -> Option<AgentReport> {
        self.report.lock().clone()
    }

    /// Stores a report.
    pub(super) fn set_report(&self, status: &GetStatusResponse) {
        *self.report.lock() = Some(AgentReport::of(status));
    }

    /// Sets the settings to send from now on. Unchanged ones are sent again only with `resend`.
    pub(super) fn set_config(&self, mut bytes: Vec<u8>, extensions: Vec<u8>, resend: bool) {
        let extensions_bytes = extensions.len();
        bytes.extend(extensions);
        let mut settings = self.settings.lock();
        let same = *settings.bytes == bytes && settings.extensions_bytes == extensions_bytes;
        if resend || settings.version == 0 || !same {
            let version = settings.version + 1;
            *settings = Settings { version, bytes: Arc::new(bytes), extensions_bytes };
        }
    }

    /// Queues a connection; returns it if too many wait.
    pub(super) fn attach(&self, client: PendingClient) -> Result<(), PendingClient> {
        self.clients.retain(|client| client.accepted.is_none() || client.is_waiting());
        self.clients.push(client)
    }

    /// Sends the settings if they are not the ones it has.
    ///
    /// An error on our side, such as too many open files, does not end the session: the message is retried
    /// later.
    async fn configure(
        &self,
        line: &ControlSocket<Self>,
        given: &mut SessionState,
    ) -> Result<io::Result<()>, ControlError> {
        let settings = self.settings.lock().clone();
        if settings.version == given.settings {
            return Ok(Ok(()));
        }
        // A new file each time, because the reader's file offset is shared.
        let file = match memfd::seal("talon-agent-settings", &settings.bytes) {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        let length = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
        let Settings { bytes, extensions_bytes, .. } = &settings;
        let configure = Configure {
            open: Some(self.open.clone()),
            settings_bytes: length(bytes.len() - extensions_bytes),
            extensions_bytes: length(*extensions_bytes),
            trace_sample: talon_telemetry::trace_sample(),
            home: self.home.get().map(|home| home.display().to_string()).unwrap_or_default(),
        };
        line.send(&message(to_agent::Kind::Configure(configure)), Some(file.as_fd())).await?;
        given.settings = settings.version;
        Ok(Ok(()))
    }

    /// Sends a connection to the plugins, if it asked for one. Errors on our side as for [`Self::configure`].
    async fn connect_host(
        &self,
        status: &ManagedServiceStatus,
        line: &ControlSocket<Self>,
        given: &mut SessionState,
    ) -> Result<io::Result<()>, ControlError> {
        let Some(id) = given.needs_host else { return Ok(Ok(())) };
        let theirs = match self.host_link.connect(status.uid, status.pid) {
            Ok(Some(theirs)) => theirs,
            // Setting the endpoint triggers another attempt.
            Ok(None) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        };
        let connection = message(to_agent::Kind::HostConnection(HostConnection { id }));
        line.send(&connection, Some(theirs.as_fd())).await?;
        given.needs_host = None;
        Ok(Ok(()))
    }
}

impl ManagedService for AgentService {
    const NAME: &'static str = "agent";
    type Outgoing = ToAgent;
    type Incoming = FromAgent;
    type Session = SessionState;

    fn new_session(pid: u32, uid: u32) -> SessionState {
        SessionState { process: AgentProcess { uid, pid }, ..SessionState::default() }
    }

    fn is_operation(message: &FromAgent) -> bool {
        matches!(message.kind, Some(from_agent::Kind::Operation(_)))
    }

    async fn reconcile(
        held: &ServiceHandle<Self>,
        line: &ControlSocket<Self>,
        given: &mut SessionState,
    ) -> Result<(), ControlError> {
        let agent = held.service();
        let told = agent.configure(line, given).await?;
        let led = agent.connect_host(&held.status(), line, given).await?;
        if let Err(error) = told.and(led) {
            if let Some(unsaid) = RESOURCE_SHORTAGE.permit() {
                tracing::warn!(%error, unsaid, "the agent waits for what it should have; see the open files limit (LimitNOFILE=)");
            }
            let held = held.clone();
            // Replaces an earlier retry, so there is at most one.
            given.retry = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep(RETRY_AFTER).await;
                held.notify_changed();
            })));
        }
        if !given.ready {
            return Ok(());
        }
        agent.models.reconcile::<Self>(line, &mut given.models).await?;
        while let Some(client) = agent.clients.pop() {
            let attach = message(to_agent::Kind::AttachClient(client.identity.clone()));
            if let Err(error) = line.send(&attach, Some(client.connection.as_fd())).await {
                // The process is gone and did not receive it, so the next one does.
                agent.clients.put_back(client);
                return Err(error);
            }
            if let Some(taken) = client.accepted {
                // An error means that the client has stopped waiting.
                let _ = taken.send(());
            }
        }
        Ok(())
    }

    fn receive(
        held: &ServiceHandle<Self>,
        given: &mut SessionState,
        message: FromAgent,
        _unwanted: Option<OwnedFd>,
    ) {
        match message.kind {
            Some(from_agent::Kind::Ready(Ready { engine, place, problems, full })) => {
                if !given.ready {
                    tracing::info!(engine = %sanitize_report(&engine), place = %sanitize_report(&place), "the agent is ready");
                }
                let complaints: Vec<_> =
                    problems.iter().take(MAX_COMPLAINTS).map(|problem| sanitize_report(problem)).collect();
                for problem in &complaints {
                    tracing::warn!(%problem, "the agent complains");
                }
                if !full.is_empty() {
                    tracing::error!(problem = %sanitize_report(&full), "the agent's database refuses writes");
                }
                held.update_status(|status| {
                    status.set_opened(&engine, &place);
                    status.set_full(&full);
                    status.complaints = complaints;
                });
                given.ready = true;
            }
            Some(from_agent::Kind::Refused(Refused { message, retryable })) => held.update_status(|status| {
                let problem = status.set_refused(&message, retryable);
                tracing::error!(%problem, "the agent cannot begin");
            }),
            Some(from_agent::Kind::NeedHost(NeedHost { id })) => given.needs_host = Some(id),
            Some(from_agent::Kind::Spans(spans)) => trace::export(spans),
            Some(from_agent::Kind::Operation(operation)) => {
                held.service().record_operation(given.process, &operation);
            }
            // A newer agent may send messages that this supervisor does not know.
            None => {}
        }
    }

    fn process_ended(&self) {
        // The supervisor's own connections are closed, so that their users learn it now. Clients wait for the
        // next process.
        self.clients.retain(PendingClient::is_waiting);
        self.host_link.disconnect();
        *self.report.lock() = None;
    }
}

fn message(kind: to_agent::Kind) -> ToAgent {
    ToAgent { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use talon_plugin::Events;
    use talon_proto::agent::ProviderState;

    use super::super::endpoint::AgentEndpoint;
    use super::super::report::MAX_PROVIDERS;
    use super::*;

    fn held() -> ServiceHandle<AgentService> {
        ServiceHandle::new(AgentService::NAME, AgentService::new(Open::default(), 64), Events::new())
    }

    // Promises: AGENT-61
    #[tokio::test]
    async fn a_shortage_of_descriptors_is_not_the_agents_end() {
        let held = held();
        let short = |_, _| Err(io::Error::from(rustix::io::Errno::MFILE));
        held.service().host_link.set_endpoint(AgentEndpoint { serve: Arc::new(short), gid: 0 });
        held.service().set_config(b"settings".to_vec(), Vec::new(), false);
        let (ours, theirs) = talon_control::pair().unwrap();
        let line = ControlSocket::<AgentService>::new(ours).unwrap();
        let mut given = SessionState { needs_host: Some(7), ..SessionState::default() };
        AgentService::reconcile(&held, &line, &mut given).await.unwrap();
        assert_eq!((given.settings, given.needs_host), (1, Some(7)));
        assert!(given.retry.is_some(), "it is tried again");
        drop(theirs);
        held.service().set_config(b"others".to_vec(), Vec::new(), false);
        AgentService::reconcile(&held, &line, &mut given).await.expect_err("the control socket is gone");
    }

    #[test]
    fn what_it_says_of_itself_is_bounded_and_goes_with_its_process() {
        let agent = AgentService::new(Open::default(), 64);
        assert_eq!(agent.report(), None);
        let provider = ProviderState { name: "a\u{1b}[2J".into(), ..ProviderState::default() };
        agent.set_report(&GetStatusResponse {
            turns_running: 2,
            approvals_pending: 1,
            providers: vec![provider; 100],
            problems: vec!["x".repeat(10_000); 100],
            ..GetStatusResponse::default()
        });
        let told = agent.report().unwrap();
        assert_eq!((told.turns_running, told.approvals_pending), (2, 1));
        assert_eq!((told.providers.len(), told.problems.len()), (MAX_PROVIDERS, MAX_COMPLAINTS));
        assert_eq!(told.providers[0].name.as_str(), "a␛[2J");
        assert!(told.problems[0].as_str().len() < 4096);
        agent.process_ended();
        assert_eq!(agent.report(), None);
    }

    #[test]
    fn the_same_settings_are_no_news_unless_an_operator_reloads() {
        let held = held();
        let version = || held.service().settings.lock().version;
        let versions = ["", "", "a", "a", "b"].map(|settings| {
            held.service().set_config(settings.into(), Vec::new(), false);
            version()
        });
        assert_eq!(versions, [1, 1, 2, 2, 3]);
        held.service().set_config(b"b".to_vec(), Vec::new(), true);
        assert_eq!(version(), 4);
        // What belongs to which of the two is news as well.
        held.service().set_config(Vec::new(), b"b".to_vec(), false);
        assert_eq!(version(), 5);
    }
}
