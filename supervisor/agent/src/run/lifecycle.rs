//! The life cycle of the process: opens its store, serves the connections that it receives, and ends with the
//! control socket.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use talon_child::inherited::{InheritedFdError, connected};
use talon_child::signals::Signals;
use talon_child::{ExitReason, open_request};
use talon_control::{Control, ControlError, Packet};
use talon_error_chain::error_chain;
use talon_proto::agent::{
    AttachClient, Configure, FromAgent, HostConnection, Refused, ToAgent, from_agent, to_agent,
};
use talon_proto::state::{Layers, Refused as NotOpened};
use talon_store::Error;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::background;
use super::configure::{ConfigReadError, Lengths, read_config};
use super::connector::{HostConnectionError, SupervisorConnector, SupervisorControl};
use crate::agent::{Agent, Configuration};
use crate::bus::relay_host;
use crate::channels::Channels;
use crate::completions::{ModelSocketError, ModelSockets};
use crate::notify::{Lanes, follow_host, schedule_failed};
use crate::proposals::{wake_on_changes, watch_declarations};
use crate::schedule::{ActionTarget, AskTarget, Scheduler, Targets};
use crate::serve::{Client, ClientError, Server};
use crate::shadow::watch_over;

/// How long requests may take to finish at shutdown; streams that follow a turn end at once. The supervisor
/// waits somewhat longer.
const CLOSE_GRACE: Duration = Duration::from_secs(3);

/// What jobs run, and where their answers go.
fn job_targets(agent: &Arc<Agent>, ending: CancellationToken) -> Arc<Targets> {
    let action = ActionTarget::new(agent.action_hosts(), agent.store.schedule(), ending);
    let answers = Arc::clone(&agent.notifier) as _;
    Arc::new(Targets { ask: AskTarget::new(Arc::clone(agent)), action, answers })
}

/// Serves the supervisor at the other end of `control`, until it is closed or SIGTERM arrives.
pub async fn run(control: OwnedFd) -> ExitReason {
    let (control, mut signals) = match (Control::new(control), Signals::listen()) {
        (Ok(control), Ok(signals)) => (Arc::new(control), signals),
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(%error, "the control socket or signals cannot be watched");
            return ExitReason::Refused;
        }
    };
    let first = tokio::select! {
        received = control.receive() => received,
        () = signals.terminated() => return ExitReason::Requested,
    };
    let (configure, descriptor) = match first {
        Ok(Some(Packet {
            message: ToAgent { kind: Some(to_agent::Kind::Configure(configure)) },
            descriptor,
        })) => (configure, descriptor),
        Ok(None) => return ExitReason::Requested,
        Ok(Some(_)) => return protocol_failure(&"the first message was not `Configure`"),
        Err(error) => return protocol_failure(&error),
    };
    let (connector, ending) = (SupervisorConnector::new(Arc::clone(&control)), CancellationToken::new());
    let opened = tokio::select! {
        opened = open(configure, descriptor, &connector, &ending) => opened,
        () = signals.terminated() => return ExitReason::Requested,
    };
    let agent = match opened {
        Ok(agent) => agent,
        Err(StartError::InvalidMessage(why)) => return protocol_failure(&why),
        Err(StartError::Refused(NotOpened { message, retryable })) => {
            tracing::error!(reason = message, retryable, "the agent cannot begin");
            // If the message does not arrive, the log has it.
            let refused = from_agent::Kind::Refused(Refused { message, retryable });
            let _sent = control.send(&agent_message(refused), None).await;
            return ExitReason::Refused;
        }
    };
    let targets = job_targets(&agent, ending.clone());
    let scheduler = Scheduler::new(Arc::clone(&agent.jobs), agent.store.schedule(), targets);
    scheduler.observe_failures({
        let notifier = Arc::clone(&agent.notifier);
        Box::new(move |job, run, reason| notifier.notify(schedule_failed(job, run, reason)))
    });
    scheduler.emit_on(agent.bus.clone());
    let scheduler = tokio::spawn(scheduler.run(ending.clone()));
    let (outbox, role_host) = (agent.store.outbox(), agent.role_host());
    let lanes = Lanes::new(Arc::clone(&agent.notifier), outbox, role_host, agent.bus.clone());
    let lanes = tokio::spawn(lanes.run(ending.clone()));
    let sources = [
        (agent.host_events(), agent.event_source()),
        (agent.plugin_events(), format!("plugins of {}", agent.event_source())),
    ];
    for (events, source) in sources {
        tokio::spawn(follow_host(Arc::clone(&agent.notifier), events, source, ending.clone()));
    }
    let channels = tokio::spawn(Channels::new(Arc::clone(&agent), ending.clone()).run());
    if let Err(error) = wake_on_changes(&agent.bus, &agent.proposals) {
        tracing::warn!(%error, "proposed jobs are only looked at now and then");
    }
    tokio::spawn(watch_declarations(Arc::clone(&agent.proposals), ending.clone()));
    let proposals = Arc::clone(&agent.proposals);
    let connected = move || proposals.wake();
    tokio::spawn(relay_host(agent.bus.clone(), agent.host_feed(), connected, ending.clone()));
    let server = Server::start(&agent, ending.clone());
    let models = ModelSockets::new(Arc::clone(&agent), ending.clone());
    let reported = background::report_operations(Arc::clone(&agent), Arc::clone(&control));
    let operations = AbortOnDropHandle::new(tokio::spawn(reported));
    let mut serving =
        RunningService { server, models, agent, connector, control, scheduler, lanes, channels, operations };
    let end = serving.serve(&mut signals).await;
    serving.finish(&ending).await;
    end
}

/// Why the agent does not start.
enum StartError {
    /// The supervisor's message is invalid.
    InvalidMessage(String),
    /// A resource that it needs is not available.
    Refused(NotOpened),
}

async fn open(
    configure: Configure,
    descriptor: Option<OwnedFd>,
    connector: &Arc<SupervisorConnector>,
    ending: &CancellationToken,
) -> Result<Arc<Agent>, StartError> {
    let lengths = Lengths::of(&configure);
    let Configure { open, trace_sample, home, .. } = configure;
    let open = open.ok_or_else(|| StartError::InvalidMessage("`Configure` names no database".to_owned()))?;
    let wanted = open_request::parse(open)
        .map_err(|error| StartError::InvalidMessage(format!("`Configure` has no sense: {error}")))?;
    if wanted.layers != Layers::Conversations {
        return Err(StartError::InvalidMessage("`Configure` names a database for something else".to_owned()));
    }
    let configuration = read(descriptor, lengths)
        .await
        .map_err(|error| StartError::Refused(NotOpened { message: error.to_string(), retryable: false }))?;
    let store =
        wanted.open.open().await.map_err(|error| StartError::Refused(open_request::refusal(&error)))?;
    // A server that cannot be reached is waited for: nothing could be read from the store now.
    if let Err(error) = store.check().await {
        let retryable = matches!(error, Error::Unavailable { .. });
        return Err(StartError::Refused(NotOpened { message: error_chain(&error), retryable }));
    }
    let agent = Agent::new(store, &configuration, Arc::clone(connector) as _, ending.clone()).await;
    let agent = agent.map_err(StartError::Refused)?;
    agent.tracer.set_sample(trace_sample);
    agent.retention.set_home(&home);
    Ok(agent)
}

/// Reads the configuration in a blocking task: it is in memory, but may have many megabytes.
async fn read(descriptor: Option<OwnedFd>, lengths: Lengths) -> Result<Configuration, ConfigReadError> {
    tokio::task::spawn_blocking(move || read_config(descriptor, lengths))
        .await
        .unwrap_or_else(|error| Err(ConfigReadError::File(std::io::Error::other(error))))
}

fn agent_message(kind: from_agent::Kind) -> FromAgent {
    FromAgent { kind: Some(kind) }
}

fn protocol_failure(why: &dyn std::fmt::Display) -> ExitReason {
    tracing::error!(%why, "the starter does not speak the control protocol; is it of another version?");
    ExitReason::ProtocolError
}

fn connection_lost(error: &ControlError) -> ExitReason {
    tracing::error!(error = error_chain(error), "the control socket failed: ending");
    ExitReason::ProtocolError
}

/// Why a message was rejected. Only logged: the supervisor's mistake does not concern the other connections.
#[derive(Debug, thiserror::Error)]
enum MessageError {
    #[error("it says nothing that this version knows")]
    Unknown,
    #[error("a client's connection: {0}")]
    Descriptor(#[from] InheritedFdError),
    #[error("a client's connection: {0}")]
    Client(#[from] ClientError),
    #[error("a connection to the host: {0}")]
    Host(#[from] HostConnectionError),
    #[error("a plugin's socket for completions: {0}")]
    Models(#[from] ModelSocketError),
}

/// The running agent and its server.
struct RunningService {
    agent: Arc<Agent>,
    server: Server,
    /// The sockets of plugins that may ask models.
    models: ModelSockets,
    connector: Arc<SupervisorConnector>,
    control: Arc<SupervisorControl>,
    /// Ends with the agent, when no run holds a claim any more.
    scheduler: JoinHandle<()>,
    /// Ends with the agent, when no notification is claimed any more.
    lanes: JoinHandle<()>,
    /// Ends with the agent, when no message is worked on any more.
    channels: JoinHandle<()>,
    /// Goes on until the last request is answered.
    operations: AbortOnDropHandle<()>,
}

impl RunningService {
    async fn serve(&mut self, signals: &mut Signals) -> ExitReason {
        let mut tasks = JoinSet::new();
        tasks.spawn(background::run_probes(Arc::clone(&self.agent)));
        tasks.spawn(background::mark_idle_sessions(Arc::clone(&self.agent)));
        tasks.spawn(background::make_memory_vectors(Arc::clone(&self.agent)));
        tasks.spawn(background::expire_media(Arc::clone(&self.agent)));
        tasks.spawn(background::delete_old_sessions(Arc::clone(&self.agent)));
        tasks.spawn(background::send_spans(Arc::clone(&self.agent), Arc::clone(&self.control)));
        tasks.spawn(watch_over(Arc::clone(&self.agent)));
        tasks.spawn(background::report_room(Arc::clone(&self.agent), Arc::clone(&self.control)));
        let costs = Arc::clone(&self.agent.costs);
        tasks.spawn(costs.flush_loop());
        // The host may take its time, and the resumed turns need it.
        let agent = Arc::clone(&self.agent);
        tasks.spawn(async move {
            agent.resume_parked().await;
            agent.resume_detached().await;
        });
        if !self.send_ready().await {
            return ExitReason::Requested;
        }
        loop {
            let received = tokio::select! {
                received = self.control.receive() => received,
                () = signals.terminated() => return ExitReason::Requested,
            };
            let packet = match received {
                Ok(Some(packet)) => packet,
                Ok(None) => return ExitReason::Requested,
                Err(error) => return connection_lost(&error),
            };
            match self.handle(packet).await {
                Ok(true) => {}
                Ok(false) => return ExitReason::Requested,
                Err(error) => tracing::error!(%error, "a message on the control socket was not obeyed"),
            }
        }
    }

    /// Handles a message. Returns whether the supervisor is still connected.
    async fn handle(&mut self, packet: Packet<ToAgent>) -> Result<bool, MessageError> {
        let Packet { message, descriptor } = packet;
        match message.kind {
            None => Err(MessageError::Unknown),
            Some(to_agent::Kind::Configure(configure)) => {
                let extra = match read(descriptor, Lengths::of(&configure)).await {
                    Ok(configuration) => {
                        self.agent.configure(&configuration);
                        None
                    }
                    Err(error) => {
                        tracing::error!(%error, "a changed configuration is not taken over");
                        Some(format!(
                            "the changed configuration was not taken over, and the one before stays: {error}"
                        ))
                    }
                };
                Ok(self.send_status(extra).await)
            }
            Some(to_agent::Kind::AttachClient(attach)) => self.attach(attach, descriptor).map(|()| true),
            Some(to_agent::Kind::AttachModel(attach)) => {
                Ok(self.models.attach(attach, descriptor).map(|()| true)?)
            }
            Some(to_agent::Kind::DetachModel(detach)) => Ok(self.models.detach(detach).map(|()| true)?),
            Some(to_agent::Kind::HostConnection(HostConnection { id })) => {
                Ok(self.connector.receive_connection(id, descriptor).map(|()| true)?)
            }
        }
    }

    fn attach(&self, attach: AttachClient, descriptor: Option<OwnedFd>) -> Result<(), MessageError> {
        let stream = connected(descriptor)?;
        Ok(self.server.attach(stream, Client::try_from(attach)?)?)
    }

    async fn send_ready(&self) -> bool {
        self.send_status(None).await
    }

    async fn send_status(&self, extra: Option<String>) -> bool {
        let mut ready = self.agent.ready().await;
        ready.problems.extend(extra);
        for problem in &ready.problems {
            tracing::warn!(problem, "something is wrong, and the agent serves all the same");
        }
        tracing::info!(engine = ready.engine, place = ready.place, "the agent serves");
        self.control.send(&agent_message(from_agent::Kind::Ready(ready)), None).await.is_ok()
    }

    /// Accepts nothing new, leaves turns interrupted, and waits for running requests.
    async fn finish(self, ending: &CancellationToken) {
        let Self { agent, server, models, scheduler, lanes, channels, operations, .. } = self;
        ending.cancel();
        let finished = async {
            agent.turns.wait_idle().await;
            server.wait_closed().await;
            models.wait_closed().await;
            if let Err(error) = scheduler.await {
                tracing::error!(%error, "the scheduler did not end by itself");
            }
            if let Err(error) = lanes.await {
                tracing::error!(%error, "the delivery of notifications did not end by itself");
            }
            if let Err(error) = channels.await {
                tracing::error!(%error, "the channels did not end by themselves");
            }
        };
        if tokio::time::timeout(CLOSE_GRACE, finished).await.is_err() {
            tracing::warn!("ending although some requests are not answered");
        }
        agent.operations.flush().await;
        drop(operations);
        agent.costs.flush().await;
        agent.store.close().await;
        tracing::info!("the agent has ended");
    }
}
