//! The seam over real processes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use talon_proto::notices::Notice;
use talon_proto::plugin::ToolCallRequest;
use talon_sanitize::{Raw, Sanitized, inert};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::capability::Capability;
use crate::client::{Client, Health};
use crate::launch::{Launcher, Process, Progress, Running};
use crate::logs::LogSink;
use crate::seam::{Launch, ProcessHandle, Pulse, Refusal, Sent, Started, StartedService, Wire};
use crate::service::ServiceSpec;
use crate::spec::PluginSpec;

impl Launch for Launcher {
    fn launch<'a>(
        &'a self,
        spec: &'a PluginSpec,
        numbers: (u32, u64),
        logs: &'a LogSink,
        progress: &'a (dyn Fn(Progress) + Send + Sync),
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Started, Refusal>> {
        async move {
            match Launcher::launch(self, spec, numbers, logs, progress, cancel).await {
                Ok(Running { process, client, capability, report, digest, dialect }) => Ok(Started {
                    process: Arc::new(process),
                    client: Arc::new(client),
                    capability,
                    report,
                    digest,
                    dialect,
                }),
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
    fn interrupt(&self) {
        Process::interrupt(self);
    }
    fn terminate(&self) {
        Process::terminate(self);
    }
    fn kill_all(&self) {
        Process::kill_all(self);
    }
}

impl Wire for Client {
    fn execute(
        &self,
        message: &ToolCallRequest,
        deadline: Option<Instant>,
        max_message_bytes: usize,
    ) -> Sent {
        Client::execute(self, message, deadline, max_message_bytes)
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
