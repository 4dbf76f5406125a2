//! The supervisor's events: read by number, stored with the number, and then acknowledged.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use talon_extensions::contract::Event;
use talon_extensions::{EventKind, EventSeverity};
use talon_proto::host::HostEvent;
use talon_store::Error;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::notifier::Notifier;
use super::writer::RETRY_WAIT;

/// The most events of one decision.
const MAX_EVENTS: usize = 64;
/// The wait between two streams: the supervisor is being replaced, or refuses for a reason that lasts.
const RECONNECT_WAIT: Duration = Duration::from_secs(5);
/// The field that says for how many events one stands.
const COUNT: &str = "count";
/// The same for a gap.
const DROPPED: &str = "dropped";
/// The fields of a gap that say which events are missing: on the wire, and as a notification has them.
const GAP_FIELDS: [(&str, &str); 2] = [("from", "first"), ("through", "last")];

/// Where the supervisor's events come from.
#[async_trait]
pub(crate) trait HostEvents: Send + Sync {
    /// The events after this number, in order.
    ///
    /// # Errors
    /// The supervisor's answer. OUT_OF_RANGE: the number was never given out.
    async fn subscribe(&self, after: u64) -> Result<BoxStream<'static, Result<HostEvent, Status>>, Status>;

    /// Acknowledges events through this number.
    ///
    /// # Errors
    /// The supervisor's answer.
    async fn acknowledge(&self, through: u64) -> Result<(), Status>;
}

/// Why a stream of events ended.
#[derive(Debug, thiserror::Error)]
enum FollowError {
    #[error("the supervisor gives no events: {}", .0.message())]
    Host(#[from] Status),
    #[error("the supervisor's events cannot be stored")]
    Store(#[from] Error),
}

/// Tells the supervisor's events until `ending`. `source` is by what the store knows its numbers.
pub(crate) async fn follow_host(
    notifier: Arc<Notifier>,
    events: Arc<dyn HostEvents>,
    source: String,
    ending: CancellationToken,
) {
    let mut reported = false;
    loop {
        let followed = tokio::select! {
            () = ending.cancelled() => return,
            followed = follow(&notifier, &*events, &source) => followed,
        };
        match followed {
            // Another one opens it again.
            Ok(()) => reported = false,
            Err(FollowError::Host(status)) if status.code() == Code::Unimplemented => {
                tracing::info!("the supervisor keeps no events: those of plugins are not told");
                return;
            }
            // Once, not each time: it is tried again every few seconds.
            Err(error) if !reported => {
                reported = true;
                let error = talon_error_chain::error_chain(&error);
                tracing::warn!(error, "the supervisor's events are not told until they can be read");
            }
            Err(_) => {}
        }
        tokio::select! {
            () = ending.cancelled() => return,
            () = sleep(RECONNECT_WAIT) => {}
        }
    }
}

/// Follows one stream to its end.
async fn follow(notifier: &Notifier, events: &dyn HostEvents, source: &str) -> Result<(), FollowError> {
    let mut after = notifier.cursor(source).await?;
    let stream = match events.subscribe(after).await {
        // They are of another log: its directory was lost, or replaced.
        Err(status) if status.code() == Code::OutOfRange && after > 0 => events.subscribe(0).await?,
        stream => stream?,
    };
    let mut stream = stream.ready_chunks(MAX_EVENTS);
    while let Some(read) = stream.next().await {
        let mut failure = None;
        let mut some = Vec::new();
        for event in read {
            match event {
                Ok(event) => some.push(event),
                Err(status) => failure = Some(status),
            }
        }
        if let Some(last) = some.last().map(|last| last.number) {
            let told: Vec<Event> = some.into_iter().filter_map(event).collect();
            while let Err(error) = notifier.notify_numbered(source, after, last, told.clone()).await {
                if !error.is_retryable() {
                    return Err(error.into());
                }
                sleep(RETRY_WAIT).await;
            }
            // Only now: what is not stored comes again.
            events.acknowledge(last).await?;
            after = last;
        }
        if let Some(status) = failure {
            return Err(status.into());
        }
    }
    Ok(())
}

/// An event of the supervisor as one of ours; `None` for a kind that this version does not know.
fn event(of_host: HostEvent) -> Option<Event> {
    let HostEvent { number, kind, severity, summary, details, time_unix_ms, fields } = of_host;
    let Ok(kind) = kind.parse::<EventKind>() else {
        tracing::warn!(number, "an event of the supervisor is of a kind that this version does not know");
        return None;
    };
    let mut fields: std::collections::BTreeMap<String, String> = fields.into_iter().collect();
    for (name, documented) in GAP_FIELDS {
        if kind == EventKind::EventsGap
            && let Some(number) = fields.remove(name)
        {
            fields.insert(documented.to_owned(), number);
        }
    }
    let counts = [COUNT, DROPPED].map(|name| fields.remove(name));
    let count = counts.into_iter().flatten().find_map(|count| count.parse().ok()).unwrap_or(1);
    Some(Event {
        // Numbers of two logs may be equal, but hardly so their times too.
        id: format!("host {number} {time_unix_ms} {kind}"),
        kind,
        severity: match severity.as_str() {
            "info" => EventSeverity::Info,
            "warning" => EventSeverity::Warning,
            "critical" => EventSeverity::Critical,
            _ => kind.severity(),
        },
        summary,
        details,
        time_unix_ms,
        fields,
        count,
    })
}

#[cfg(test)]
#[path = "host_events_tests.rs"]
mod tests;
