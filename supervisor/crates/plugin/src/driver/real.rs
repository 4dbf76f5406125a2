//! Implements the driver's traits for real processes.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use talon_control::parcel::Packer;
use talon_proto::notices::Notice;
use talon_proto::plugin::ToolCallRequest;
use talon_sanitize::{Raw, Sanitized, inert};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;

use crate::capability::Capability;
use crate::client::{Client, Health};
use crate::handover::{Adopted, Counted, HandOverError, Handed, HandedProcess};
use crate::launch::{Choice, Launcher, Process, Progress, Running};
use crate::logs::LogSink;
use crate::name::PluginName;
use crate::seam::{Launch, ProcessHandle, Pulse, Refusal, Sent, Started, StartedService, Wire};
use crate::service::ServiceSpec;
use crate::spec::PluginSpec;
use crate::usage::Reading;

impl Launch for Launcher {
    fn expect(&self, spec: &PluginSpec) {
        Launcher::expect(self, spec);
    }

    fn launch<'a>(
        &'a self,
        spec: &'a PluginSpec,
        numbers: (u32, u64),
        choice: Choice<'a>,
        logs: &'a LogSink,
        progress: &'a (dyn Fn(Progress) + Send + Sync),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Started, Refusal>> {
        async move {
            match Launcher::launch(self, spec, numbers, choice, logs, progress, cancel).await {
                Ok(Running { process, client, capability, report, digest, dialect, taken_over }) => {
                    Ok(Started {
                        process: Arc::new(process),
                        client: Arc::new(client),
                        capability,
                        report,
                        digest,
                        dialect,
                        taken_over,
                    })
                }
                Err(error) => Err(Refusal { permanent: error.is_permanent(), cause: Raw::of(&error).line() }),
            }
        }
        .boxed()
    }

    fn service<'a>(
        &'a self,
        spec: &'a ServiceSpec,
        logs: &'a LogSink,
    ) -> BoxFuture<'a, Result<StartedService, Refusal>> {
        async move {
            Launcher::service(self, spec, logs)
                .await
                .map_err(|error| Refusal { permanent: error.is_permanent(), cause: Raw::of(&error).line() })
        }
        .boxed()
    }

    fn remove_all(&self) {
        Launcher::remove_all(self);
    }
    fn hand_over(&self, packer: &mut Packer) -> Result<Handed, HandOverError> {
        Launcher::hand_over(self, packer)
    }
    fn let_go(&self) {
        Launcher::let_go(self);
    }
    fn read_out(&self) -> BoxFuture<'_, ()> {
        Launcher::read_out(self).boxed()
    }
    fn let_go_of_groups(&self) -> bool {
        Launcher::let_go_of_groups(self)
    }
    fn adopted(&self) -> Adopted {
        Launcher::adopted(self)
    }
    fn monitors(&self) -> BTreeSet<u32> {
        Launcher::monitors(self)
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
        async move { inert!("{}", Process::exited(self).await) }.boxed()
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        Process::gone(self).boxed()
    }
    fn reading(&self) -> Option<Reading> {
        Some(Process::reading(self))
    }
    fn ended_by_memory(&self) -> bool {
        Process::ended_by_memory(self)
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
        counted: Counted,
        packer: &mut Packer,
    ) -> io::Result<HandedProcess> {
        Process::hand_over(self, name, instance, counted, packer)
    }
}

impl Wire for Client {
    fn execute(
        &self,
        message: &ToolCallRequest,
        metadata: MetadataMap,
        deadline: Option<Instant>,
        max_message_bytes: usize,
    ) -> Sent {
        Client::execute(self, message, metadata, deadline, max_message_bytes)
    }
    fn health(&self, timeout: Duration) -> BoxFuture<'_, Pulse> {
        async move {
            match Client::health(self, timeout).await {
                Health::Serving => Pulse::Serving,
                Health::NotServing => Pulse::NotServing,
                Health::Failed(cause) => Pulse::Failed(cause),
            }
        }
        .boxed()
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
    fn shutdown(&self, timeout: Duration) -> BoxFuture<'_, bool> {
        Client::shutdown(self, timeout).boxed()
    }
}
