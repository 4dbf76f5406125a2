//! Reads the events of one process.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::stream::{BoxStream, StreamExt};
use talon_proto::notices::{AcknowledgeEventsRequest, PluginEvent, RefusedEvent};
use talon_sanitize::{Sanitized, sanitized};
use tokio::time::{Instant, sleep};

use super::event_sink::{EventCounters, EventSink, RecordedEvents};
use super::source_event::SourceEvent;
use crate::live_process::LiveProcess;
use crate::logs::Level;
use crate::plugin_context::PluginContext;

/// The most events of one write and one acknowledgement.
const MAX_BATCH: usize = 64;
/// How long a plugin may take to accept an acknowledgement. Then its stream is opened anew, and it sends the events again.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a plugin without the grant is looked at again: a reload may bring it.
const GRANT_RECHECK: Duration = Duration::from_secs(5);
/// The delay before a broken stream is opened anew, or a refused write is tried again; doubles up to [`RETRY_MAX`].
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// The shortest interval between two log lines about refused events.
const REFUSAL_REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Events that are settled together.
#[derive(Default)]
struct Batch {
    events: Vec<SourceEvent>,
    refused: Vec<RefusedEvent>,
}

/// Reads events, has them recorded, and acknowledges them.
pub(crate) struct EventIntake {
    pub(crate) common: Arc<PluginContext>,
    pub(crate) instance: u32,
    pub(crate) live: Arc<LiveProcess>,
}

impl EventIntake {
    /// Reads events until the process turns out to tell none. The owner of the task ends it with the process.
    pub(crate) async fn run(self) {
        let Some(sink) = self.common.event_sink.get().cloned() else { return };
        let mut wait = RETRY;
        let mut reported: Option<Instant> = None;
        loop {
            if sink.limits(&self.common.spec.name).is_none() {
                self.counters().set_problem(None);
                sleep(GRANT_RECHECK).await;
                continue;
            }
            let Some(events) = self.live.client.events().await else { return };
            let (any, end) = self.read(events, &*sink, &mut reported).await;
            self.counters().set_waiting(false);
            if any {
                wait = RETRY;
            }
            if let Err(why) = end {
                self.note(sanitized!("its events are read again in {} s: {}", wait.as_secs(), why));
                self.counters().set_problem(Some(why));
            }
            sleep(wait).await;
            wait = (2 * wait).min(RETRY_MAX);
        }
    }

    /// Reads one stream to its end. Returns whether any event of it was acknowledged, and why it was left.
    async fn read(
        &self,
        events: BoxStream<'static, Result<PluginEvent, Sanitized>>,
        sink: &dyn EventSink,
        reported: &mut Option<Instant>,
    ) -> (bool, Result<(), Sanitized>) {
        let mut any = false;
        let mut events = events.ready_chunks(MAX_BATCH);
        while let Some(chunk) = events.next().await {
            let mut batch = Batch::default();
            let mut failure = None;
            for event in chunk {
                let event = match event {
                    Ok(event) => event,
                    Err(why) => {
                        failure = Some(why);
                        break;
                    }
                };
                let Some(limits) = sink.limits(&self.common.spec.name) else { return (any, Ok(())) };
                if self.counters().take(limits).is_err() {
                    // What came in time does not wait for what did not.
                    match self.settle(sink, std::mem::take(&mut batch), reported).await {
                        Ok(settled) => any |= settled,
                        Err(why) => return (any, Err(why)),
                    }
                    if !self.wait_for_rate(sink).await {
                        return (any, Ok(()));
                    }
                }
                match SourceEvent::check(&event, SystemTime::now()) {
                    Ok(event) => batch.events.push(event),
                    Err(why) => batch.refused.push(RefusedEvent { id: event.id, reason: why.to_string() }),
                }
            }
            match self.settle(sink, batch, reported).await {
                Ok(settled) => any |= settled,
                Err(why) => return (any, Err(why)),
            }
            if let Some(why) = failure {
                return (any, Err(why));
            }
        }
        (any, Ok(()))
    }

    /// Has events recorded, and acknowledges them. Returns whether there were any.
    async fn settle(
        &self,
        sink: &dyn EventSink,
        batch: Batch,
        reported: &mut Option<Instant>,
    ) -> Result<bool, Sanitized> {
        let Batch { events, refused } = batch;
        if events.is_empty() && refused.is_empty() {
            return Ok(false);
        }
        let settled = (events.len() + refused.len()) as u64;
        let ids = events.iter().map(|event| event.id.clone()).collect();
        self.report_refused(&refused, reported);
        let recorded = self.record(sink, events).await;
        self.counters().add(recorded, refused.len() as u64);
        let acknowledged = AcknowledgeEventsRequest { ids, refused };
        let answered = self.live.client.acknowledge_events(acknowledged, ACKNOWLEDGE_TIMEOUT).await;
        answered.map_err(|why| sanitized!("it does not take acknowledgements: {}", why))?;
        self.counters().add_acknowledged(settled);
        self.counters().set_problem(None);
        Ok(true)
    }

    /// Waits until the plugin may tell another event; `false`: it may tell none any more.
    async fn wait_for_rate(&self, sink: &dyn EventSink) -> bool {
        loop {
            let Some(limits) = sink.limits(&self.common.spec.name) else { return false };
            match self.counters().take(limits) {
                Ok(()) => {
                    self.counters().set_waiting(false);
                    return true;
                }
                Err(wait) => {
                    self.counters().set_waiting(true);
                    // A reload may bring another limit.
                    sleep(wait.min(GRANT_RECHECK)).await;
                }
            }
        }
    }

    /// Has events recorded. While the disk refuses they wait here, and the others in the plugin.
    async fn record(&self, sink: &dyn EventSink, batch: Vec<SourceEvent>) -> RecordedEvents {
        let mut wait = RETRY;
        if batch.is_empty() {
            return RecordedEvents::default();
        }
        loop {
            match sink.record(&self.common.spec.name, batch.clone()).await {
                Ok(recorded) => {
                    self.counters().set_waiting(false);
                    return recorded;
                }
                Err(why) => {
                    self.counters().set_waiting(true);
                    tracing::warn!(plugin = %self.common.spec.name, "events of a plugin wait: {why}");
                    sleep(wait).await;
                    wait = (2 * wait).min(RETRY_MAX);
                }
            }
        }
    }

    fn report_refused(&self, refused: &[RefusedEvent], reported: &mut Option<Instant>) {
        let Some(first) = refused.first() else { return };
        if reported.is_none_or(|at| at.elapsed() >= REFUSAL_REPORT_INTERVAL) {
            *reported = Some(Instant::now());
            let reason = talon_sanitize::Raw::from(first.reason.as_str()).line();
            self.note(sanitized!("events of it are refused, the first of {}: {}", refused.len(), reason));
        }
    }

    fn counters(&self) -> &EventCounters {
        &self.common.event_counters
    }

    fn note(&self, text: Sanitized) {
        self.common.logs.note(self.instance, Level::Warn, text);
    }
}
