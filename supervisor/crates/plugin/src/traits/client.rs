//! The calls that a process serves.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use talon_plugin_client::{Capability, HealthStatus, PendingCall};
use talon_proto::notices::{AcknowledgeEventsRequest, Notice, PluginEvent};
use talon_proto::plugin::ToolCallRequest;
use talon_sanitize::Sanitized;
use talon_wire::frames::FrameFloodError;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;

/// The calls that a process serves. Dropping a call's future cancels it on the wire.
pub(crate) trait PluginClient: Send + Sync + 'static {
    /// Sends nothing until the answer is polled. At the deadline the answer is
    /// [`talon_plugin_client::ExecuteError::TimedOut`].
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
    /// The events that the process tells, as [`PluginClient::notices`]. An error is the last item.
    fn events(&self) -> BoxFuture<'_, Option<BoxStream<'static, Result<PluginEvent, Sanitized>>>>;
    /// Acknowledges events.
    fn acknowledge_events(
        &self,
        acknowledged: AcknowledgeEventsRequest,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<(), Sanitized>>;
    /// Resolves once the process has exceeded the budget of frames of one of its connections.
    fn flood(&self) -> BoxFuture<'_, FrameFloodError>;
    /// Asks the plugin to end itself. Returns whether it agreed.
    fn shutdown(&self, timeout: Duration) -> BoxFuture<'_, bool>;
}
