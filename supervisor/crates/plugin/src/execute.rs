//! One call to a plugin as this crate sees it: the request, and its progress.

use std::sync::Arc;
use std::time::Duration;

use talon_sanitize::{Raw, Sanitized};
use tokio::time::Instant;
use tonic::metadata::{AsciiMetadataKey, AsciiMetadataValue, MetadataMap};
use tracing::Span;

/// One call, ready for the wire.
#[derive(Debug, Clone, Default)]
pub struct ExecuteRequest {
    /// The message as the plugin receives it; its `plugin` field is the declared name.
    pub message: talon_proto::plugin::ToolCallRequest,
    /// After this instant the answer is no longer awaited. `None` waits as long as the plugin lives; the
    /// guard's deadline layer always sets one.
    pub deadline: Option<Instant>,
    /// The operator's timeout for such calls, if it sets this deadline. Only then can the plugin be killed
    /// for ignoring the deadline (`kill_overdue_after`): otherwise a caller could kill plugins with short
    /// deadlines. Time that the call waited elsewhere does not count against the plugin either, or callers
    /// could kill it by queueing: the plugin gets this full time from when it receives the call.
    pub configured_timeout: Option<Duration>,
    /// Receives the progress of the call.
    pub observer: Option<ProgressObserver>,
    /// Receives what the call puts out while it runs.
    pub output: Option<OutputObserver>,
    /// gRPC metadata to send, if any. With metadata, the request gets its own span.
    pub metadata: Option<Metadata>,
}

/// How many pairs of [`Metadata`] are sent: a trace context has two. Further pairs are dropped.
pub const MAX_METADATA_PAIRS: usize = 8;
/// The longest value of [`Metadata`], in bytes: twice what a trace context may have. A longer one is dropped.
pub const MAX_METADATA_BYTES: usize = 1024;

/// Provides the gRPC metadata of a call when it is sent: names and values, computed from the span of the
/// request.
#[derive(Clone)]
pub struct Metadata(Arc<MetadataFn>);

type MetadataFn = dyn Fn(&Span) -> Vec<(&'static str, String)> + Send + Sync;

impl Metadata {
    /// Metadata computed by `ask`. Pairs that gRPC cannot send as text are dropped.
    #[must_use]
    pub fn new(ask: impl Fn(&Span) -> Vec<(&'static str, String)> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }

    pub(crate) fn for_span(&self, request: &Span) -> MetadataMap {
        let mut map = MetadataMap::new();
        for (name, value) in (self.0)(request).into_iter().take(MAX_METADATA_PAIRS) {
            let name = AsciiMetadataKey::from_bytes(name.as_bytes());
            let value = Some(value).filter(|value| value.len() <= MAX_METADATA_BYTES);
            if let (Ok(name), Some(Ok(value))) = (name, value.map(AsciiMetadataValue::try_from)) {
                map.insert(name, value);
            }
        }
        map
    }
}

impl std::fmt::Debug for Metadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metadata").finish_non_exhaustive()
    }
}

/// The progress of a call, as reported by its plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct CallProgress {
    /// Finite and not negative; the plugin chooses the unit.
    pub progress: f64,
    /// The total in the same unit, if the plugin knows it.
    pub total: Option<f64>,
    /// One line for people, at most [`MAX_PROGRESS_MESSAGE_BYTES`].
    pub message: Sanitized,
}

/// The longest message of a call's progress, in bytes; `talon.plugin.v1` promises to keep this much.
pub const MAX_PROGRESS_MESSAGE_BYTES: usize = 1024;

/// Receives the progress of a call. It is called while the plugin's notices are read, so it must not block.
#[derive(Clone)]
pub struct ProgressObserver(Arc<dyn Fn(&CallProgress) + Send + Sync>);

impl ProgressObserver {
    /// An observer that calls `hear`.
    #[must_use]
    pub fn new(hear: impl Fn(&CallProgress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    pub(crate) fn notify(&self, progress: &CallProgress) {
        (self.0)(progress);
    }
}

/// What a call put out, as its plugin sent it.
#[derive(Debug, Default)]
pub struct CallOutput<'t> {
    /// Lines, unlimited but for the size of a notice.
    pub lines: Vec<Raw<'t>>,
    /// Lines that were left out since the last time: by the plugin, or because it sends too many notices.
    pub left_out_lines: u64,
    /// Bytes of the latter.
    pub left_out_bytes: u64,
}

/// Receives the output of a call. It is called while the plugin's notices are read, so it must not block.
#[derive(Clone)]
pub struct OutputObserver(Arc<OutputFn>);

type OutputFn = dyn Fn(CallOutput<'_>) + Send + Sync;

impl OutputObserver {
    /// An observer that calls `hear`.
    #[must_use]
    pub fn new(hear: impl Fn(CallOutput<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    pub(crate) fn notify(&self, output: CallOutput<'_>) {
        (self.0)(output);
    }
}

impl std::fmt::Debug for OutputObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputObserver").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ProgressObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_bounded_and_what_cannot_be_sent_is_left_out() {
        let said = |pairs: Vec<(&'static str, String)>| {
            Metadata::new(move |_| pairs.clone()).for_span(&Span::none())
        };
        let long = "x".repeat(MAX_METADATA_BYTES + 1);
        let map = said(vec![
            ("traceparent", "00-1".to_owned()),
            ("tracestate", long),
            ("Not A Name", "v".to_owned()),
            ("bytes-bin", "v".to_owned()),
            ("line", "a\nb".to_owned()),
        ]);
        assert_eq!(map.len(), 1);
        assert_eq!(map.get("traceparent").unwrap(), "00-1");
        const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let many = NAMES.iter().map(|name| (*name, String::new())).collect();
        assert_eq!(said(many).len(), MAX_METADATA_PAIRS);
    }
}
