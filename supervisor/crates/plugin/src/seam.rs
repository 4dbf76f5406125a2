//! What the driver needs of a launcher, a process and its client. Traits, so that the driver's own tests run
//! it against a scripted launcher and paused time.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use talon_proto::notices::Notice;
use talon_proto::plugin::ToolCallRequest;
use talon_sanitize::Sanitized;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::capability::Capability;
use crate::execute::ExecuteError;
use crate::launch::Progress;
use crate::logs::LogSink;
use crate::service::ServiceSpec;
use crate::spec::{Dialect, PluginSpec};

/// Starts processes.
pub(crate) trait Launch: Send + Sync + 'static {
    /// The whole start of an instance's generation (`numbers`, in that order), bounded by the spec's start timeout. On an error nothing
    /// is left behind. `cancel` ends it soon with an error, whatever it is. Dropping the future kills what was
    /// started, but cannot wait until it is gone.
    fn launch<'a>(
        &'a self,
        spec: &'a PluginSpec,
        numbers: (u32, u64),
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
}

/// A process that is ready for calls.
pub(crate) struct Started {
    pub(crate) process: Arc<dyn ProcessHandle>,
    pub(crate) client: Arc<dyn Wire>,
    pub(crate) capability: Arc<Capability>,
    pub(crate) report: talon_jail::Report,
    pub(crate) digest: String,
    pub(crate) dialect: Dialect,
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
    fn interrupt(&self);
    fn terminate(&self);
    fn kill_all(&self);
}

/// The calls that a process takes. Every one is cancelled on the wire when its future is dropped.
pub(crate) trait Wire: Send + Sync + 'static {
    /// Nothing happens before the answer is asked for. At the deadline it is [`ExecuteError::TimedOut`].
    fn execute(&self, message: &ToolCallRequest, deadline: Option<Instant>, max_message_bytes: usize)
    -> Sent;
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
