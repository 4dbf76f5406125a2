//! The launcher as a trait. The driver's tests implement it with a scripted launcher under paused time.

use std::collections::BTreeSet;

use futures_util::future::BoxFuture;
use talon_control::fd_bundle::Packer;
use talon_plugin_config::spec::PluginSpec;
use tokio_util::sync::CancellationToken;

use crate::handover::{AdoptionCounts, HandoverDocument, HandoverError};
use crate::launch::ProgramChoice;
use crate::logs::LogSink;
use crate::service_spec::ServiceSpec;
use crate::traits::start::{LaunchProgress, StartFailure, StartedProcess, StartedService};

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

    /// Disables the delegated cgroup controllers again, if the next supervisor could not be started
    /// otherwise.
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
