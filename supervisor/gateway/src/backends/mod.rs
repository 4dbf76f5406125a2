//! Host and agent, as clients of them: each request is made for a [`Caller`], which travels as metadata.
//!
//! | module | contents |
//! |---|---|
//! | `delegation` | the metadata that says whom a request is for |
//! | `connector` | where connections come from: the supervisor, or sockets at a path |
//!
//! A broken connection is replaced at the next request. Host and agent believe the metadata on connections that the supervisor handed
//! to the gateway, and on no other.

mod connector;
mod delegation;

use std::sync::Arc;

use talon_listen::FRAME_BYTES;
use talon_proto::agent::agent_client::AgentClient;
use talon_proto::host::host_client::HostClient;
use talon_wire::Connector;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};

use crate::identity::{Caller, Scope};
use crate::problem::Problem;

pub use connector::{Backend, ConnectBackend, SocketPaths};
pub use delegation::Delegation;

/// The largest message from host or agent: as they limit them.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// How much of an answer waits here for one reader who does not read. 32 KiB: what a connection of a client holds once more, so that one that
/// does not read costs 64 KiB.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 32 << 10;
/// The same of all answers of one connection: as much as HTTP/2 has, so that readers who do not read hold up nobody else. What waits is
/// limited by the streams: their number (`agent.limits.requests_per_connection`) and their windows.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;

/// A channel whose requests are for one caller.
pub type CallerChannel = InterceptedService<Channel, Delegation>;

/// Host and agent. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Backends {
    host: Channel,
    agent: Channel,
}

impl Backends {
    /// Connects at the first request, and again whenever it needs to. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(connector: &Arc<dyn ConnectBackend>) -> Self {
        Self { host: channel(connector, Backend::Host), agent: channel(connector, Backend::Agent) }
    }

    /// The supervisor, for this caller.
    #[must_use]
    pub fn host(&self, caller: &Caller) -> HostClient<CallerChannel> {
        HostClient::with_interceptor(self.host.clone(), Delegation::of(caller))
            .max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// The agent, for this caller.
    #[must_use]
    pub fn agent(&self, caller: &Caller) -> AgentClient<CallerChannel> {
        AgentClient::with_interceptor(self.agent.clone(), Delegation::of(caller))
            .max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// The agent, for a message of a caller who follows what comes of it: with the scope `approve` it can be asked back as a person is,
    /// and what waits for its answer is decided by [`agent_as_person`](Self::agent_as_person) again.
    #[must_use]
    pub fn agent_that_asks_back(&self, caller: &Caller) -> AgentClient<CallerChannel> {
        self.agent_as_person(caller).unwrap_or_else(|_| self.agent(caller))
    }

    /// The agent, for a decision of this caller about an approval: it counts as a person's. What `/v1` brings, and what a
    /// model or plugin wrote, never comes here.
    ///
    /// # Errors
    /// A [`Problem`] without the scope `approve`.
    pub fn agent_as_person(&self, caller: &Caller) -> Result<AgentClient<CallerChannel>, Problem> {
        caller.require(Scope::Approve)?;
        Ok(AgentClient::with_interceptor(self.agent.clone(), Delegation::of(caller).by_person())
            .max_decoding_message_size(MAX_ANSWER_BYTES))
    }
}

fn channel(connector: &Arc<dyn ConnectBackend>, backend: Backend) -> Channel {
    let connector = Arc::clone(connector);
    let endpoint = Endpoint::from_static("http://backend.invalid")
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES);
    Connector::new(move || {
        let connector = Arc::clone(&connector);
        async move { connector.connect(backend).await }
    })
    .connect_lazy(&endpoint)
}
