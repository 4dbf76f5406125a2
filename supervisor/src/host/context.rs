//! What the handlers of the host API work with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use talon_guard::ResolveError;
use talon_guard::resolve::Suggestions;
use talon_listen::ConnectionLimiter;
use talon_plugin::{Events, Plugin, Registry};
use talon_plugin_config::name::RESERVED_NAME;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::{Request, Status};

use super::closing::StreamCloser;
use super::doctor_run::Diagnoses;
use super::exit_requests::ExitSender;
use crate::agent;
use crate::audit::{Audit, OperationRecording};
use crate::credentials::Credentials;
use crate::dispatch::Dispatcher;
use crate::events::EventRecorder;
use crate::gateway::GatewaySupervisor;
use crate::peer::{Peer, Principal};
use crate::receipts::Receipts;
use crate::reload::Reloader;
use crate::series::Series;
use crate::state::StateSupervisor;
use crate::to_wire::status_text;
use crate::usage::UsageReader;

/// Static information about the supervisor, and handles to its parts.
#[derive(Clone)]
pub struct SupervisorInfo {
    /// When it started.
    pub started: SystemTime,
    /// The directory of its sockets.
    pub runtime_dir: PathBuf,
    /// The directory of persistent data.
    pub data_dir: PathBuf,
    /// The configuration file, if there is one.
    pub config_file: Option<PathBuf>,
    /// Protections that this machine cannot provide for plugins, each with its reason.
    pub not_enforced: Vec<String>,
    /// Changes configuration and plugins at runtime.
    pub reloader: Reloader,
    /// The state service; `None` if state is off.
    pub state: Option<StateSupervisor>,
    /// The agent; `None` if there is none.
    pub agent: Option<agent::AgentSupervisor>,
    /// Resource usage of processes.
    pub usages: UsageReader,
    /// The name of the machine's sandbox tier.
    pub tier: &'static str,
    /// The audit log of calls and operations.
    pub audit: Audit,
    /// Proofs of the agent's calls.
    pub receipts: Receipts,
    /// The events for an operator.
    pub recorder: EventRecorder,
    /// The gateway; `None` if there is none.
    pub gateway: Option<GatewaySupervisor>,
    /// Access to the gateway; `None` if state is off.
    pub credentials: Option<Credentials>,
    /// Numbers over time; `None` without a gateway.
    pub series: Option<Series>,
}

/// The supervisor's parts as the handlers use them. Cheap to clone.
#[derive(Clone)]
pub(super) struct HostContext {
    pub(super) registry: Registry,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) events: Events,
    pub(super) info: Arc<SupervisorInfo>,
    /// Streams of events and logs, counted.
    pub(super) followers: Arc<ConnectionLimiter<Principal>>,
    /// Ends the streams when the supervisor ends.
    pub(super) closing: StreamCloser,
    pub(super) exit_requests: ExitSender,
    /// Held while the audit log is read.
    pub(super) reading: Arc<Semaphore>,
    pub(super) diagnoses: Arc<Diagnoses>,
}

impl HostContext {
    /// Records an operation until it ends. A denied operation of an unknown user is not recorded: such a user
    /// could fill the disk.
    pub(super) fn record<T>(&self, request: &Request<T>, verb: &str, subject: &str) -> OperationRecording {
        let peer = request.extensions().get::<Peer>().filter(|peer| peer.rights.is_some());
        let nobody = Audit::default();
        let audit = if peer.is_some() { &self.info.audit } else { &nobody };
        audit.operation(peer, verb, subject)
    }

    /// Waits until nobody else reads the audit log, which may be large: one reader at a time costs the others nothing.
    pub(super) async fn reading_turn(&self) -> Result<OwnedSemaphorePermit, Status> {
        let turn = Arc::clone(&self.reading).acquire_owned().await;
        turn.map_err(|_| Status::internal("internal error"))
    }

    /// The plugin of that name, or an error that names the nearest ones.
    pub(super) fn plugin(&self, name: &str) -> Result<Plugin, Status> {
        self.plugin_among(name, |_| true)
    }

    /// The same for a peer that does not see every plugin.
    pub(super) fn plugin_among(&self, name: &str, shown: impl Fn(&str) -> bool) -> Result<Plugin, Status> {
        if name == RESERVED_NAME && self.dispatcher.core().is_some() {
            return Err(Status::failed_precondition(status_text(format!(
                "{RESERVED_NAME} is the supervisor itself: it has no process to start, stop or follow; see `talon status`"
            ))));
        }
        self.registry.get(name).ok_or_else(|| {
            let names: Vec<String> = self
                .registry
                .list()
                .iter()
                .map(|plugin| plugin.name().to_string())
                .filter(|name| shown(name))
                .collect();
            Status::not_found(status_text(unknown_plugin(name, &names)))
        })
    }
}

/// The same text as the refusal of a call to an unknown plugin.
fn unknown_plugin(name: &str, names: &[String]) -> String {
    let others = Suggestions::for_name(name, names.iter().map(String::as_str));
    ResolveError::UnknownPlugin { plugin: name.to_owned(), others }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: HOST-10
    #[test]
    fn an_unknown_name_gets_the_nearest_ones() {
        let names = ["hello".to_owned(), "code-search".to_owned()];
        assert!(unknown_plugin("helo", &names).ends_with("did you mean \"hello\"?"));
        assert!(unknown_plugin("zzz", &names).contains("\"code-search\""));
        assert!(unknown_plugin(&"x".repeat(1000), &names).len() < 200);
    }
}
