//! The life cycle of the process: opens its store, serves the connections that it receives, and ends with the control
//! socket.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use talon_child::handed::{NotWanted, connected};
use talon_child::signals::Signals;
use talon_child::{End, chain, opening};
use talon_control::{Control, ControlError, Packet};
use talon_proto::agent::{
    AttachClient, Configure, FromAgent, HostConnection, Refused, ToAgent, from_agent, to_agent,
};
use talon_proto::state::{Layers, Refused as NotOpened};
use talon_store::Error;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::agent::Agent;
use super::chores;
use super::configure::{NotRead, handed};
use super::link::{Link, Starter};
use crate::serve::{BadClient, Client, Server};

/// How long requests may take to finish at shutdown; streams that follow a turn end at once. The supervisor waits
/// somewhat longer.
const CLOSE_GRACE: Duration = Duration::from_secs(3);

/// Serves the supervisor at the other end of `control`, until it is closed or SIGTERM arrives.
pub async fn run(control: OwnedFd) -> End {
    let (starter, mut signals) = match (Control::new(control), Signals::listen()) {
        (Ok(starter), Ok(signals)) => (Arc::new(starter), signals),
        (Err(error), _) | (_, Err(error)) => {
            tracing::error!(%error, "the control socket or signals cannot be watched");
            return End::Refused;
        }
    };
    let first = tokio::select! {
        received = starter.receive() => received,
        () = signals.terminated() => return End::Asked,
    };
    let (configure, descriptor) = match first {
        Ok(Some(Packet {
            message: ToAgent { what: Some(to_agent::What::Configure(configure)) },
            descriptor,
        })) => (configure, descriptor),
        Ok(None) => return End::Asked,
        Ok(Some(_)) => return misled(&"the first message was not `Configure`"),
        Err(error) => return misled(&error),
    };
    let (link, ending) = (Link::new(Arc::clone(&starter)), CancellationToken::new());
    let opened = tokio::select! {
        opened = open(configure, descriptor, &link, &ending) => opened,
        () = signals.terminated() => return End::Asked,
    };
    let agent = match opened {
        Ok(agent) => agent,
        Err(NotBegun::Senseless(why)) => return misled(&why),
        Err(NotBegun::Refused(NotOpened { message, retryable })) => {
            tracing::error!(reason = message, retryable, "the agent cannot begin");
            // If the message does not arrive, the log has it.
            let refused = from_agent::What::Refused(Refused { message, retryable });
            let _told = starter.send(&from_us(refused), None).await;
            return End::Refused;
        }
    };
    let mut serving = Serving { server: Server::start(&agent, ending.clone()), agent, link, starter };
    let end = serving.serve(&mut signals).await;
    serving.finish(&ending).await;
    end
}

/// Why the agent does not start.
enum NotBegun {
    /// The supervisor's message is invalid.
    Senseless(String),
    /// A resource that it needs is not available.
    Refused(NotOpened),
}

async fn open(
    configure: Configure,
    descriptor: Option<OwnedFd>,
    link: &Arc<Link>,
    ending: &CancellationToken,
) -> Result<Arc<Agent>, NotBegun> {
    let Configure { open, settings_bytes } = configure;
    let open = open.ok_or_else(|| NotBegun::Senseless("`Configure` names no database".to_owned()))?;
    let wanted = opening::wanted(open)
        .map_err(|error| NotBegun::Senseless(format!("`Configure` has no sense: {error}")))?;
    if wanted.layers != Layers::Conversations {
        return Err(NotBegun::Senseless("`Configure` names a database for something else".to_owned()));
    }
    let handed = read(descriptor, settings_bytes)
        .await
        .map_err(|error| NotBegun::Refused(NotOpened { message: error.to_string(), retryable: false }))?;
    let store = wanted.open.open().await.map_err(|error| NotBegun::Refused(opening::refused(&error)))?;
    // A server that cannot be reached is waited for: nothing could be read from the store now.
    if let Err(error) = store.check().await {
        let retryable = matches!(error, Error::Unavailable { .. });
        return Err(NotBegun::Refused(NotOpened { message: chain(&error), retryable }));
    }
    Agent::new(store, &handed, Arc::clone(link) as _, ending.clone()).await.map_err(NotBegun::Refused)
}

/// Reads the configuration in a blocking task: it is in memory, but may have many megabytes.
async fn read(descriptor: Option<OwnedFd>, bytes: u64) -> Result<talon_agent_settings::Handed, NotRead> {
    tokio::task::spawn_blocking(move || handed(descriptor, bytes))
        .await
        .unwrap_or_else(|error| Err(NotRead::File(std::io::Error::other(error))))
}

fn from_us(what: from_agent::What) -> FromAgent {
    FromAgent { what: Some(what) }
}

fn misled(why: &dyn std::fmt::Display) -> End {
    tracing::error!(%why, "the starter does not speak the control protocol; is it of another version?");
    End::Protocol
}

fn lost(error: &ControlError) -> End {
    tracing::error!(error = chain(error), "the control socket failed: ending");
    End::Protocol
}

/// Why a message was rejected. Only logged: the supervisor's mistake does not concern the other connections.
#[derive(Debug, thiserror::Error)]
enum NotObeyed {
    #[error("it says nothing that this version knows")]
    Unknown,
    #[error("a client's connection: {0}")]
    Descriptor(#[from] NotWanted),
    #[error("a client's connection: {0}")]
    Client(#[from] BadClient),
    #[error("a connection to the host: {0}")]
    Host(String),
}

/// The running agent and its server.
struct Serving {
    agent: Arc<Agent>,
    server: Server,
    link: Arc<Link>,
    starter: Arc<Starter>,
}

impl Serving {
    async fn serve(&mut self, signals: &mut Signals) -> End {
        let mut chores = JoinSet::new();
        chores.spawn(chores::probe(Arc::clone(&self.agent)));
        chores.spawn(chores::idle(Arc::clone(&self.agent)));
        let costs = Arc::clone(&self.agent.costs);
        chores.spawn(costs.keep());
        // The host may take its time, and the resumed turns need it.
        let agent = Arc::clone(&self.agent);
        chores.spawn(async move { agent.go_on_with_parked().await });
        if !self.tell_ready().await {
            return End::Asked;
        }
        loop {
            let received = tokio::select! {
                received = self.starter.receive() => received,
                () = signals.terminated() => return End::Asked,
            };
            let packet = match received {
                Ok(Some(packet)) => packet,
                Ok(None) => return End::Asked,
                Err(error) => return lost(&error),
            };
            match self.handle(packet).await {
                Ok(true) => {}
                Ok(false) => return End::Asked,
                Err(error) => tracing::error!(%error, "a message on the control socket was not obeyed"),
            }
        }
    }

    /// Handles a message. Returns whether the supervisor is still connected.
    async fn handle(&mut self, packet: Packet<ToAgent>) -> Result<bool, NotObeyed> {
        let Packet { message, descriptor } = packet;
        match message.what {
            None => Err(NotObeyed::Unknown),
            Some(to_agent::What::Configure(Configure { settings_bytes, .. })) => {
                let extra = match read(descriptor, settings_bytes).await {
                    Ok(handed) => {
                        self.agent.configure(&handed);
                        None
                    }
                    Err(error) => {
                        tracing::error!(%error, "a changed configuration is not taken over");
                        Some(format!(
                            "the changed configuration was not taken over, and the one before stays: {error}"
                        ))
                    }
                };
                Ok(self.tell(extra).await)
            }
            Some(to_agent::What::AttachClient(attach)) => self.attach(attach, descriptor).map(|()| true),
            Some(to_agent::What::HostConnection(HostConnection { id })) => {
                self.link.handed(id, descriptor).map(|()| true).map_err(NotObeyed::Host)
            }
        }
    }

    fn attach(&self, attach: AttachClient, descriptor: Option<OwnedFd>) -> Result<(), NotObeyed> {
        let stream = connected(descriptor)?;
        Ok(self.server.attach(stream, Client::try_from(attach)?)?)
    }

    async fn tell_ready(&self) -> bool {
        self.tell(None).await
    }

    async fn tell(&self, extra: Option<String>) -> bool {
        let mut ready = self.agent.ready().await;
        ready.problems.extend(extra);
        for problem in &ready.problems {
            tracing::warn!(problem, "something is wrong, and the agent serves all the same");
        }
        tracing::info!(engine = ready.engine, place = ready.place, "the agent serves");
        self.starter.send(&from_us(from_agent::What::Ready(ready)), None).await.is_ok()
    }

    /// Accepts nothing new, leaves turns interrupted, and waits for running requests.
    async fn finish(self, ending: &CancellationToken) {
        let Self { agent, server, .. } = self;
        ending.cancel();
        let finished = async {
            agent.turns.ended().await;
            server.ended().await;
        };
        if tokio::time::timeout(CLOSE_GRACE, finished).await.is_err() {
            tracing::warn!("ending although some requests are not answered");
        }
        agent.costs.write().await;
        agent.store.close().await;
        tracing::info!("the agent has ended");
    }
}
