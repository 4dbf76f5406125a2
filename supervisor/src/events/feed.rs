//! The events after a number, as a stream.

use std::io;
use std::time::SystemTime;

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use prost::Message as _;
use talon_event_log::{EventReader, Page};
use talon_proto::host::HostEvent;
use tokio::sync::watch::Receiver;

use super::host_event::{GapCause, gap};
use super::log_state::LogState;
use super::plugin_log::PluginEventLog;
use super::recorder::EventRecorder;
use crate::blocking::blocking;

/// Why a subscriber gets no events. The texts end with what to do next.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedError {
    /// The log is not open.
    #[error("the event log cannot be read: {0}; see the supervisor's log, then ask again")]
    Unavailable(String),
    /// Reading failed.
    #[error("the event log cannot be read: {0}; check the disk, then ask again")]
    Io(#[from] io::Error),
    /// No event has this number.
    #[error("event {after} was never given out here, the last one is {last}: ask again without a number")]
    Unknown {
        /// What the subscriber has.
        after: u64,
        /// The last event.
        last: u64,
    },
}

/// Where a subscriber stands.
struct Feed {
    state: Receiver<LogState>,
    position: u64,
    /// Ends after this number; `None` goes on for ever.
    through: Option<u64>,
    /// Comes before everything else.
    gap: Option<HostEvent>,
}

impl EventRecorder {
    /// The events after a number. With `kept_only` it ends after those that are there. `subscriber` is a service that acknowledges.
    ///
    /// # Errors
    /// [`FeedError`]; the stream ends with one, too.
    pub(crate) fn feed(
        &self,
        subscriber: Option<&str>,
        after: u64,
        kept_only: bool,
    ) -> Result<BoxStream<'static, Result<HostEvent, FeedError>>, FeedError> {
        feed(self.subscribe(), subscriber, after, kept_only)
    }
}

impl PluginEventLog {
    /// The same of the events that plugins tell.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn feed(
        &self,
        subscriber: Option<&str>,
        after: u64,
        kept_only: bool,
    ) -> Result<BoxStream<'static, Result<HostEvent, FeedError>>, FeedError> {
        feed(self.subscribe(), subscriber, after, kept_only)
    }
}

fn feed(
    state: Receiver<LogState>,
    subscriber: Option<&str>,
    after: u64,
    kept_only: bool,
) -> Result<BoxStream<'static, Result<HostEvent, FeedError>>, FeedError> {
    let reader = reader_of(&state.borrow())?;
    let (position, gap) = begin(&reader, subscriber, after)?;
    let through = kept_only.then(|| reader.last());
    let feed = Feed { state, position, through, gap };
    let pages = stream::try_unfold(feed, |mut feed| async move {
        let page = feed.next_page().await?;
        Ok::<_, FeedError>(page.map(|events| (events, feed)))
    });
    let events = pages.map_ok(|events| stream::iter(events.into_iter().map(Ok))).try_flatten();
    Ok(events.boxed())
}

/// Where to begin, and what is missing before that.
fn begin(
    reader: &EventReader,
    subscriber: Option<&str>,
    after: u64,
) -> Result<(u64, Option<HostEvent>), FeedError> {
    let (last, origin, oldest) = (reader.last(), reader.origin(), reader.oldest());
    if after > last {
        return Err(FeedError::Unknown { after, last });
    }
    let now = SystemTime::now();
    if after > 0 && after < origin.saturating_sub(1) {
        // Its events are of a log that is lost.
        let gap = gap(after + 1, oldest - 1, GapCause::NewLog, now);
        return Ok((oldest - 1, Some(gap)));
    }
    if after > 0 {
        return Ok((after, None));
    }
    let known = subscriber.map(|name| reader.acknowledged(name).unwrap_or(origin - 1));
    let missing = known.filter(|known| *known < oldest - 1);
    let gap = missing.map(|known| gap(known + 1, oldest - 1, GapCause::Removed, now));
    Ok((oldest - 1, gap))
}

fn reader_of(state: &LogState) -> Result<EventReader, FeedError> {
    state.reader.clone().ok_or_else(|| {
        let closed = "another supervisor has it, or this one ends";
        FeedError::Unavailable(state.problem.clone().unwrap_or_else(|| closed.to_owned()))
    })
}

impl Feed {
    /// The next events; `None` at the end. Waits for new ones.
    async fn next_page(&mut self) -> Result<Option<Vec<HostEvent>>, FeedError> {
        if let Some(gap) = self.gap.take() {
            return Ok(Some(vec![gap]));
        }
        loop {
            if self.through.is_some_and(|through| self.position >= through) {
                return Ok(None);
            }
            // Marked as seen before it is read, so that nothing that comes meanwhile is missed.
            let reader = reader_of(&self.state.borrow_and_update())?;
            if self.position < reader.last() {
                let position = self.position;
                let page = blocking(move || reader.page_after(position)).await?;
                let events = self.events(page);
                if !events.is_empty() {
                    return Ok(Some(events));
                }
            }
            if self.state.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    fn events(&mut self, page: Page) -> Vec<HostEvent> {
        let missing = page.missing.map(|range| {
            self.position = *range.end();
            gap(*range.start(), *range.end(), GapCause::Removed, SystemTime::now())
        });
        let mut events: Vec<HostEvent> = missing.into_iter().collect();
        for (number, bytes) in page.events {
            if self.through.is_some_and(|through| number > through) {
                break;
            }
            self.position = number;
            // It is whole, so a newer version wrote it in another way; its number is there.
            let event = HostEvent::decode(bytes.as_slice()).unwrap_or_default();
            events.push(HostEvent { number, ..event });
        }
        events
    }
}
