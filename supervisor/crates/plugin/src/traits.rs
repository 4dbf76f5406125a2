//! The traits through which the driver uses a launcher, a process and its client. The driver's tests implement them
//! with a scripted launcher under paused time.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use talon_control::fd_bundle::Packer;
use talon_plugin_client::{Capability, HealthStatus, PendingCall};
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::{Dialect, PluginSpec};
use talon_proto::notices::Notice;
use talon_proto::plugin::ToolCallRequest;
use talon_sanitize::Sanitized;
use talon_wire::frames::FrameFloodError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;

use crate::handover::{AdoptionCounts, HandoverDocument, HandoverError, InstanceCounters, ProcessRecord};
use crate::launch::ProgramChoice;
use crate::logs::LogSink;
use crate::service::ServiceSpec;
use crate::usage::Reading;

/// Starts processes.
pub(crate) trait Launch: Send + Sync + 'static {
    /// Announces a plugin that was added; if it is enabled, it is started soon.
    fn announce(&self, _spec: &PluginSpec) {}

    /// Starts one instance completely; `numbers` are its index and its generation. Bounded by the spec's
    /// start timeout. Starts the program on the disk or, if `choice` says so, the last one that became ready.
    /// On an error nothing is left behind. `cancel` makes it return an error soon. Dropping the future kills
    /// the started process, but cannot wait until it is gone.
    fn launch<'a>(
        &'a self,
        spec: &'a PluginSpec,
        numbers: (u32, u64),
        choice: ProgramChoice<'a>,
        logs: &'a LogSink,
        progress: &'a (dyn Fn(LaunchProgress) + Send + Sync),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<StartedProcess, StartFailure>>;

    /// Starts a service until its program runs; bounded, and completed even if the future is dropped. On an
    /// error nothing is left behind.
    fn service<'a>(
        &'a self,
        spec: &'a ServiceSpec,
        logs: &'a LogSink,
    ) -> BoxFuture<'a, Result<StartedService, StartFailure>>;

    /// Removes this supervisor's files from the runtime directory; called once, when no process is left.
    fn remove_all(&self);

    /// What another supervisor needs in addition to the processes themselves.
    fn hand_over(&self, _packer: &mut Packer) -> Result<HandoverDocument, HandoverError> {
        Err(HandoverError::NothingToHandOver)
    }

    /// Stops starting processes and removing files: another supervisor owns both from now on.
    fn release(&self) {}

    /// Waits until all output of released processes is in their logs.
    fn flush_output(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Disables the delegated cgroup controllers again, if the next supervisor could not be started otherwise.
    fn release_cgroup_controllers(&self) -> bool {
        false
    }

    /// Counts of the processes that another supervisor handed over.
    fn adoption_counts(&self) -> AdoptionCounts {
        AdoptionCounts::default()
    }

    /// The monitors of those processes that are still alive.
    fn adopted_monitors(&self) -> BTreeSet<u32> {
        BTreeSet::new()
    }

    /// Ends the handed-over processes that no plugin claimed.
    fn discard_unclaimed(&self) -> usize {
        0
    }
}

/// The progress of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchProgress {
    /// The program was started.
    Started { pid: u32, uid: u32 },
    /// Its handshake is valid.
    Handshaken,
}

/// A process that is ready for calls.
pub(crate) struct StartedProcess {
    pub(crate) process: Arc<dyn ProcessHandle>,
    pub(crate) client: Arc<dyn PluginClient>,
    pub(crate) capability: Arc<Capability>,
    pub(crate) report: talon_jail::Report,
    pub(crate) digest: String,
    pub(crate) dialect: Dialect,
    /// The counters from the previous supervisor, if the process was handed over.
    pub(crate) taken_over: Option<InstanceCounters>,
}

/// A service that runs.
pub(crate) struct StartedService {
    pub(crate) process: Arc<dyn ProcessHandle>,
    /// The supervisor's end of its standard input.
    pub(crate) control: OwnedFd,
    pub(crate) report: talon_jail::Report,
    /// Resolves with its last output, once it is gone and its output is read.
    pub(crate) last_output: BoxFuture<'static, Option<Sanitized>>,
}

/// Why a start failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartFailure {
    /// The whole cause in one bounded text that ends with what to do next.
    pub(crate) cause: Sanitized,
    /// Whether the same start would fail again until something is changed.
    pub(crate) permanent: bool,
}

/// One process. Dropping the last handle kills it and everything it started.
pub(crate) trait ProcessHandle: Send + Sync + 'static {
    fn pid(&self) -> u32;
    fn uid(&self) -> u32;
    /// Resolves as soon as the program ends, with its exit status as text. May be awaited many times.
    fn exited(&self) -> BoxFuture<'_, Sanitized>;
    /// Resolves when no process and no directory of it is left.
    fn gone(&self) -> BoxFuture<'_, ()>;
    /// Resource usage of it and everything it started; blocking. `None`: not known.
    fn reading(&self) -> Option<Reading> {
        None
    }
    /// Whether it was ended for using too much memory.
    fn was_oom_killed(&self) -> bool {
        false
    }
    fn interrupt(&self);
    fn terminate(&self);
    fn kill_all(&self);
    /// What another supervisor needs to take it over; `NotFound` if it cannot be handed over.
    fn hand_over(
        &self,
        _name: &PluginName,
        _instance: u32,
        _counted: InstanceCounters,
        _packer: &mut Packer,
    ) -> io::Result<ProcessRecord> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The calls that a process serves. Dropping a call's future cancels it on the wire.
pub(crate) trait PluginClient: Send + Sync + 'static {
    /// Sends nothing until the answer is polled. At the deadline the answer is [`talon_plugin_client::ExecuteError::TimedOut`].
    fn execute(
        &self,
        message: &ToolCallRequest,
        metadata: MetadataMap,
        deadline: Option<Instant>,
        max_message_bytes: usize,
    ) -> PendingCall;
    fn health(&self, timeout: Duration) -> BoxFuture<'_, HealthStatus>;
    /// `None`: the plugin does not implement it.
    fn refresh_capabilities(
        &self,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<Option<Arc<Capability>>, Sanitized>>;
    /// The notices that the process sends, from now on. The stream ends with the connection. `None`: the
    /// plugin does not serve notices.
    fn notices(&self) -> BoxFuture<'_, Option<BoxStream<'static, Notice>>>;
    /// Resolves once the process has exceeded the budget of frames of one of its connections.
    fn flood(&self) -> BoxFuture<'_, FrameFloodError>;
    /// Asks the plugin to end itself. Returns whether it agreed.
    fn shutdown(&self, timeout: Duration) -> BoxFuture<'_, bool>;
}
