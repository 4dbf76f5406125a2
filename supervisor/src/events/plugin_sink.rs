//! The registry's way to the log: what each plugin may tell, by the running configuration.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use talon_plugin::{EventKind, EventLimits, EventSink, Events, NewEvent, RecordedEvents, SourceEvent};
use talon_plugin_config::name::PluginName;
use talon_sanitize::{Raw, Sanitized};

use super::plugin_log::PluginEventLog;
use super::recorder::EventRecorder;
use crate::dispatch::Dispatcher;

/// Takes events of plugins.
pub(crate) struct PluginEventSink {
    dispatcher: Arc<Dispatcher>,
    log: PluginEventLog,
    events: Events,
}

impl PluginEventSink {
    /// What is recorded goes to who watches `events`, too.
    pub(crate) fn new(dispatcher: &Arc<Dispatcher>, recorder: &EventRecorder, events: Events) -> Self {
        Self { dispatcher: Arc::clone(dispatcher), log: recorder.plugins().clone(), events }
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
        let (log, watched, plugin) = (self.log.clone(), self.events.clone(), plugin.clone());
        async move {
            let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            let told = count(events.len());
            let new = log.record(plugin.to_string(), events).await;
            let new = new.map_err(|why| Raw::from(why.as_str()).line())?;
            for event in &new {
                watched.emit(to_watch(&plugin, event));
            }
            let new = count(new.len());
            Ok(RecordedEvents { new, repeated: told - new })
        }
        .boxed()
    }
}

/// An event as people see it who watch.
fn to_watch(plugin: &PluginName, event: &SourceEvent) -> NewEvent {
    NewEvent::new(EventKind::SourceEvent, event.summary.clone())
        .plugin(plugin)
        .field("topic", &event.topic)
        .field("event_id", &event.id)
        .field("severity", event.severity.as_str())
}
