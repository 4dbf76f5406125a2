//! What the driver needs of a launcher, a process and its client. Traits, so that the driver's own tests run
//! it against a scripted launcher and paused time.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use talon_control::parcel::Packer;
use talon_proto::notices::Notice;
use talon_proto::plugin::ToolCallRequest;
use talon_sanitize::Sanitized;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;

use crate::capability::Capability;
use crate::execute::ExecuteError;
use crate::handover::{Adopted, Counted, HandOverError, Handed, HandedProcess};
use crate::launch::{Choice, Progress};
use crate::logs::LogSink;
use crate::name::PluginName;
use crate::service::ServiceSpec;
use crate::spec::{Dialect, PluginSpec};
use crate::usage::Reading;

/// Starts processes.
pub(crate) trait Launch: Send + Sync + 'static {
    /// Says which plugin was added, which is started soon if it is enabled.
    fn expect(&self, _spec: &PluginSpec) {}

    /// The whole start of an instance's generation (`numbers`, in that order), bounded by the spec's start timeout, of what lies on
    /// the disk or, by `choice`, of the program that came up last. On an error nothing
    /// is left behind. `cancel` ends it soon with an error, whatever it is. Dropping the future kills what was
    /// started, but cannot wait until it is gone.
    fn launch<'a>(
        &'a self,
        spec: &'a PluginSpec,
        numbers: (u32, u64),
        choice: Choice<'a>,
        logs: &'a LogSink,
        progress: &'a (dyn Fn(Progress) + Send + Sync),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Started, Refusal>>;

    /// The start of a service, to a running program; bounded, and run to its end. On an error nothing is left behind.
    fn service<'a>(
        &'a self,
        spec: &'a ServiceSpec,
        logs: &'a LogSink,
    ) -> BoxFuture<'a, Result<StartedService, Refusal>>;

    /// Removes what is ours in the runtime directory; called once, when no process is left.
    fn remove_all(&self);

    /// What another supervisor needs beside the processes themselves.
    fn hand_over(&self, _packer: &mut Packer) -> Result<Handed, HandOverError> {
        Err(HandOverError::Nothing)
    }

    /// Starts nothing more, and removes nothing more: it is another supervisor's from here on.
    fn let_go(&self) {}

    /// Waits until everything that released processes have printed is in their logs.
    fn read_out(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Takes back the controllers of cgroups, where the next supervisor could not be started otherwise.
    fn let_go_of_groups(&self) -> bool {
        false
    }

    /// What became of the processes that another supervisor handed over.
    fn adopted(&self) -> Adopted {
        Adopted::default()
    }

    /// Their monitors, as far as they live.
    fn monitors(&self) -> BTreeSet<u32> {
        BTreeSet::new()
    }

    /// Ends those that nobody asked for.
    fn discard_unclaimed(&self) -> usize {
        0
    }
}

/// A process that is ready for calls.
pub(crate) struct Started {
    pub(crate) process: Arc<dyn ProcessHandle>,
    pub(crate) client: Arc<dyn Wire>,
    pub(crate) capability: Arc<Capability>,
    pub(crate) report: talon_jail::Report,
    pub(crate) digest: String,
    pub(crate) dialect: Dialect,
    /// What another supervisor counted, if it was handed over.
    pub(crate) taken_over: Option<Counted>,
}

/// A service that runs.
pub(crate) struct StartedService {
    pub(crate) process: Arc<dyn ProcessHandle>,
    /// Our end of its standard input.
    pub(crate) control: OwnedFd,
    pub(crate) report: talon_jail::Report,
    /// Resolves once it is gone and its output is read, with what it said last.
    pub(crate) words: BoxFuture<'static, Option<Sanitized>>,
}

/// Why there is no process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The whole story in one bounded text that ends with what to do next.
    pub(crate) cause: Sanitized,
    /// Whether the same start would fail again: something has to be changed first.
    pub(crate) permanent: bool,
}

/// One process; dropping the last handle kills it and all it started.
pub(crate) trait ProcessHandle: Send + Sync + 'static {
    fn pid(&self) -> u32;
    fn uid(&self) -> u32;
    /// Resolves as soon as the program ends, with how it ended. May be awaited many times.
    fn exited(&self) -> BoxFuture<'_, Sanitized>;
    /// Resolves when nothing of it is left, neither process nor directory.
    fn gone(&self) -> BoxFuture<'_, ()>;
    /// What it and all it started use; blocking. `None`: nothing is known.
    fn reading(&self) -> Option<Reading> {
        None
    }
    /// Whether it ended because its memory was used up.
    fn ended_by_memory(&self) -> bool {
        false
    }
    fn interrupt(&self);
    fn terminate(&self);
    fn kill_all(&self);
    /// What another supervisor needs to go on with it; `NotFound` if it cannot be handed over.
    fn hand_over(
        &self,
        _name: &PluginName,
        _instance: u32,
        _counted: Counted,
        _packer: &mut Packer,
    ) -> io::Result<HandedProcess> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The calls that a process takes. Every one is cancelled on the wire when its future is dropped.
pub(crate) trait Wire: Send + Sync + 'static {
    /// Nothing happens before the answer is asked for. At the deadline it is [`ExecuteError::TimedOut`].
    fn execute(
        &self,
        message: &ToolCallRequest,
        metadata: MetadataMap,
        deadline: Option<Instant>,
        max_message_bytes: usize,
    ) -> Sent;
    fn health(&self, timeout: Duration) -> BoxFuture<'_, Pulse>;
    /// `None`: the plugin does not implement it.
    fn refresh_capabilities(
        &self,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<Option<Arc<Capability>>, Sanitized>>;
    /// What the process tells unasked, from now on. It ends when the connection does. `None`: the plugin has no such service.
    fn notices(&self) -> BoxFuture<'_, Option<BoxStream<'static, Notice>>>;
    /// Whether the plugin agreed to end itself.
    fn shutdown(&self, timeout: Duration) -> BoxFuture<'_, bool>;
}

/// One call on its way. It is cancelled on the wire when both of its futures are dropped.
pub(crate) struct Sent {
    pub(crate) answer: BoxFuture<'static, Result<Bytes, ExecuteError>>,
    /// For once nobody waits for the answer any more: resolves when the plugin has ended the call, however it did, and
    /// at once if it never saw it. What it still sends is thrown away.
    pub(crate) rest: BoxFuture<'static, ()>,
}

/// What a health check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pulse {
    Serving,
    NotServing,
    Failed(Sanitized),
}
