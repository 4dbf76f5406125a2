//! The client of a fake process.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt};
use parking_lot::Mutex;
use talon_plugin_client::{Capability, ExecuteError, HealthStatus, PendingCall};
use talon_plugin_config::name::PluginName;
use talon_proto::notices::{AcknowledgeEventsRequest, Notice, PluginEvent};
use talon_proto::plugin::{Action, PluginCapabilities, ToolCallRequest};
use talon_sanitize::Sanitized;
use talon_wire::frames::{FrameFloodError, FrameLimits};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tonic::metadata::MetadataMap;

use super::alive::AliveGuard;
use super::behavior::FakeBehavior;
use super::process::FakeProcess;
use crate::traits::client::PluginClient;
use crate::traits::process::ProcessHandle;

pub(super) struct FakeClient {
    pub(super) answer: String,
    pub(super) behavior: FakeBehavior,
    pub(super) process: Arc<FakeProcess>,
    pub(super) gate: Arc<Semaphore>,
    pub(super) streams: Arc<AtomicUsize>,
    pub(super) declared: Arc<Mutex<PluginCapabilities>>,
    pub(super) notices: Mutex<Option<mpsc::UnboundedReceiver<Notice>>>,
}

impl PluginClient for FakeClient {
    fn execute(
        &self,
        message: &ToolCallRequest,
        _metadata: MetadataMap,
        deadline: Option<Instant>,
        _max_message_bytes: usize,
    ) -> PendingCall {
        let stream = Arc::new(AliveGuard::new(&self.streams));
        let (breaks, behavior, held) = (message.action == "break", self.behavior, stream.clone());
        let (gate, process, answer) = (self.gate.clone(), self.process.clone(), self.answer.clone());
        PendingCall {
            answer: Box::pin(async move {
                let _held = held;
                if breaks {
                    return Err(ExecuteError::Transport(Arc::new(std::io::Error::other("broken pipe"))));
                }
                if behavior.gated {
                    let admitted = gate.acquire();
                    let admitted = match deadline {
                        None => Ok(admitted.await),
                        Some(deadline) => tokio::time::timeout_at(deadline, admitted).await,
                    };
                    let waited = Duration::ZERO;
                    admitted.map_err(|_| ExecuteError::TimedOut { waited, sent: true })?.unwrap().forget();
                }
                Ok(Bytes::from(answer))
            }),
            stream_end: Box::pin(async move {
                let _held = stream;
                match behavior.ends_overdue_after {
                    Some(time) => tokio::time::sleep(time).await,
                    None => drop(process.exited().await),
                }
            }),
        }
    }
    fn health(&self, timeout: Duration) -> BoxFuture<'_, HealthStatus> {
        async move {
            if self.behavior.healthy {
                return HealthStatus::Serving;
            }
            tokio::time::sleep(timeout).await;
            HealthStatus::Failed("no answer".into())
        }
        .boxed()
    }
    fn refresh_capabilities(
        &self,
        _timeout: Duration,
    ) -> BoxFuture<'_, Result<Option<Arc<Capability>>, Sanitized>> {
        let name = PluginName::new("hello").unwrap();
        let mut declared = self.declared.lock().clone();
        declared.actions.push(Action { name: "refreshed".to_owned(), ..Action::default() });
        let capability = Capability::check(declared, &name).unwrap();
        async move { Ok(Some(Arc::new(capability))) }.boxed()
    }
    fn notices(&self) -> BoxFuture<'_, Option<BoxStream<'static, Notice>>> {
        let notices = self.notices.lock().take();
        let stream = notices.map(|notices| {
            futures_util::stream::unfold(notices, |mut notices| async move {
                Some((notices.recv().await?, notices))
            })
            .boxed()
        });
        std::future::ready(stream).boxed()
    }
    fn events(&self) -> BoxFuture<'_, Option<BoxStream<'static, Result<PluginEvent, Sanitized>>>> {
        std::future::ready(None).boxed()
    }
    fn acknowledge_events(
        &self,
        _acknowledged: AcknowledgeEventsRequest,
        _timeout: Duration,
    ) -> BoxFuture<'_, Result<(), Sanitized>> {
        std::future::ready(Ok(())).boxed()
    }
    fn flood(&self) -> BoxFuture<'_, FrameFloodError> {
        let mut flood = self.process.flood.subscribe();
        async move {
            if flood.wait_for(|flooded| *flooded).await.is_err() {
                std::future::pending::<()>().await;
            }
            FrameFloodError::Control(FrameLimits::default())
        }
        .boxed()
    }
    fn shutdown(&self, _timeout: Duration) -> BoxFuture<'_, bool> {
        self.process.record("Shutdown");
        if self.behavior.accepts_shutdown {
            self.process.exit("exit code 0");
        }
        let polite = self.behavior.accepts_shutdown;
        async move { polite }.boxed()
    }
}
