//! The registry's way to the log: what each plugin may tell, by the running configuration.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use talon_plugin::{EventLimits, EventSink, RecordedEvents, SourceEvent};
use talon_plugin_config::name::PluginName;
use talon_sanitize::{Raw, Sanitized};

use super::plugin_log::PluginEventLog;
use super::recorder::EventRecorder;
use crate::dispatch::Dispatcher;

/// Takes events of plugins.
pub(crate) struct PluginEventSink {
    dispatcher: Arc<Dispatcher>,
    log: PluginEventLog,
}

impl PluginEventSink {
    pub(crate) fn new(dispatcher: &Arc<Dispatcher>, recorder: &EventRecorder) -> Self {
        Self { dispatcher: Arc::clone(dispatcher), log: recorder.plugins().clone() }
    }
}

impl EventSink for PluginEventSink {
    fn limits(&self, plugin: &PluginName) -> Option<EventLimits> {
        // Another supervisor reads them meanwhile, and two would take the stream from each other.
        if self.log.is_paused() {
            return None;
        }
        self.dispatcher.config().event_limits(plugin.as_str())
    }

    fn record(
        &self,
        plugin: &PluginName,
        events: Vec<SourceEvent>,
    ) -> BoxFuture<'static, Result<RecordedEvents, Sanitized>> {
        let (log, plugin) = (self.log.clone(), plugin.to_string());
        async move { log.record(plugin, events).await.map_err(|why| Raw::from(why.as_str()).line()) }.boxed()
    }
}
