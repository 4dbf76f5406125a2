//! Implements the driver's traits for real processes.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt as _, TryFutureExt as _};
use talon_control::fd_bundle::Packer;
use talon_plugin_client::{Capability, Client, HealthStatus, PendingCall, describe_status};
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::PluginSpec;
use talon_proto::notices::{AcknowledgeEventsRequest, Notice, PluginEvent};
use talon_proto::plugin::ToolCallRequest;
use talon_sanitize::{Raw, Sanitized, sanitized};
use talon_wire::frames::FrameFloodError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;

use crate::handover::{AdoptionCounts, HandoverDocument, HandoverError, InstanceCounters, ProcessRecord};
use crate::launch::{Launcher, Process, ProgramChoice};
use crate::launcher::Launch;
use crate::logs::LogSink;
use crate::service_spec::ServiceSpec;
use crate::traits::client::PluginClient;
use crate::traits::process::ProcessHandle;
use crate::traits::start::{LaunchProgress, StartFailure, StartedProcess, StartedService};
use crate::usage::Reading;

impl Launch for Launcher {
    fn announce(&self, spec: &PluginSpec) {
        Launcher::announce(self, spec);
    }

    fn launch<'a>(
        &'a self,
        spec: &'a PluginSpec,
        numbers: (u32, u64),
        choice: ProgramChoice<'a>,
        logs: &'a LogSink,
        progress: &'a (dyn Fn(LaunchProgress) + Send + Sync),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<StartedProcess, StartFailure>> {
        async move {
            Launcher::launch(self, spec, numbers, choice, logs, progress, cancel)
                .await
                .map_err(|error| StartFailure { kind: error.kind(), cause: error.describe() })
        }
        .boxed()
    }

    fn service<'a>(
        &'a self,
        spec: &'a ServiceSpec,
        logs: &'a LogSink,
    ) -> BoxFuture<'a, Result<StartedService, StartFailure>> {
        async move {
            Launcher::service(self, spec, logs)
                .await
                .map_err(|error| StartFailure { kind: error.kind(), cause: error.describe() })
        }
        .boxed()
    }

    fn remove_all(&self) {
        Launcher::remove_all(self);
    }
    fn hand_over(&self, packer: &mut Packer) -> Result<HandoverDocument, HandoverError> {
        Launcher::hand_over(self, packer)
    }
    fn release(&self) {
        Launcher::release(self);
    }
    fn flush_output(&self) -> BoxFuture<'_, ()> {
        Launcher::flush_output(self).boxed()
    }
    fn release_cgroup_controllers(&self) -> bool {
        Launcher::release_cgroup_controllers(self)
    }
    fn adoption_counts(&self) -> AdoptionCounts {
        Launcher::adoption_counts(self)
    }
    fn adopted_monitors(&self) -> BTreeSet<u32> {
        Launcher::adopted_monitors(self)
    }
    fn discard_unclaimed(&self) -> usize {
        Launcher::discard_unclaimed(self)
    }
}

impl ProcessHandle for Process {
    fn pid(&self) -> u32 {
        Process::pid(self)
    }
    fn uid(&self) -> u32 {
        Process::uid(self)
    }
    fn exited(&self) -> BoxFuture<'_, Sanitized> {
        async move { sanitized!("{}", Process::exited(self).await) }.boxed()
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        Process::gone(self).boxed()
    }
    fn reading(&self) -> Option<Reading> {
        Some(Process::reading(self))
    }
    fn was_oom_killed(&self) -> bool {
        Process::was_oom_killed(self)
    }
    fn interrupt(&self) {
        Process::interrupt(self);
    }
    fn terminate(&self) {
        Process::terminate(self);
    }
    fn kill_all(&self) {
        Process::kill_all(self);
    }
    fn hand_over(
        &self,
        name: &PluginName,
        instance: u32,
        counted: InstanceCounters,
        packer: &mut Packer,
    ) -> io::Result<ProcessRecord> {
        Process::hand_over(self, name, instance, counted, packer)
    }
}

impl PluginClient for Client {
    fn execute(
        &self,
        message: &ToolCallRequest,
        metadata: MetadataMap,
        deadline: Option<Instant>,
        max_message_bytes: usize,
    ) -> PendingCall {
        Client::execute(self, message, metadata, deadline, max_message_bytes)
    }
    fn health(&self, timeout: Duration) -> BoxFuture<'_, HealthStatus> {
        Client::health(self, timeout).boxed()
    }
    fn refresh_capabilities(
        &self,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<Option<Arc<Capability>>, Sanitized>> {
        async move { Client::refresh_capabilities(self, timeout).await.map_err(|error| Raw::of(error).line()) }
            .boxed()
    }
    fn notices(&self) -> BoxFuture<'_, Option<BoxStream<'static, Notice>>> {
        Client::notices(self).boxed()
    }
    fn events(&self) -> BoxFuture<'_, Option<BoxStream<'static, Result<PluginEvent, Sanitized>>>> {
        let described =
            |event: Result<PluginEvent, tonic::Status>| event.map_err(|status| describe_status(&status));
        // One that serves none may say so after it has opened the stream.
        let served = |event: &Result<PluginEvent, tonic::Status>| {
            let is_served = !matches!(event, Err(status) if status.code() == tonic::Code::Unimplemented);
            std::future::ready(is_served)
        };
        async move { Some(Client::events(self).await?.take_while(served).map(described).boxed()) }.boxed()
    }
    fn acknowledge_events(
        &self,
        acknowledged: AcknowledgeEventsRequest,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<(), Sanitized>> {
        let answered = Client::acknowledge_events(self, acknowledged, timeout);
        answered.map_err(|status| describe_status(&status)).boxed()
    }
    fn flood(&self) -> BoxFuture<'_, FrameFloodError> {
        Client::flood(self).boxed()
    }
    fn shutdown(&self, timeout: Duration) -> BoxFuture<'_, bool> {
        Client::shutdown(self, timeout).boxed()
    }
}
