//! The progress of one call in flight, and how often it is published.

use std::time::Duration;

use tokio::time::Instant;

use crate::execute::{CallProgress, ProgressObserver};

/// How many progress updates of a call are published within one [`WINDOW`]; later ones wait, and only the
/// latest is kept. Ten a second is as fast as people can read; clients gain nothing from more, and forwarding
/// each one costs.
const MAX_IN_WINDOW: u32 = 10;
/// See [`MAX_IN_WINDOW`].
const WINDOW: Duration = Duration::from_secs(1);

/// Tracks the progress of one call in flight. It is dropped with the call, so that reports about a finished
/// call have no effect.
#[derive(Debug)]
pub(crate) struct ProgressThrottle {
    id: String,
    action: String,
    observer: Option<ProgressObserver>,
    /// When the current window began.
    window_start: Option<Instant>,
    sent: u32,
    /// The latest update that came too soon.
    pending: Option<CallProgress>,
}

/// A progress update to publish.
#[derive(Debug)]
pub(crate) struct ProgressUpdate {
    /// The call's id on the plugin's wire.
    pub(crate) call_id: String,
    pub(crate) action: String,
    pub(crate) observer: Option<ProgressObserver>,
    pub(crate) progress: CallProgress,
}

impl ProgressThrottle {
    pub(crate) fn new(id: &str, action: &str, observer: Option<ProgressObserver>) -> Self {
        Self {
            id: id.to_owned(),
            action: action.to_owned(),
            observer,
            window_start: None,
            sent: 0,
            pending: None,
        }
    }

    pub(crate) fn is_call(&self, call_id: &str) -> bool {
        self.id == call_id
    }

    pub(crate) fn record(&mut self, progress: CallProgress, now: Instant) -> Option<ProgressUpdate> {
        if self.window_start.is_none_or(|began| now >= began + WINDOW) {
            (self.window_start, self.sent) = (Some(now), 0);
        }
        if self.sent == MAX_IN_WINDOW {
            self.pending = Some(progress);
            return None;
        }
        self.sent += 1;
        self.pending = None;
        Some(self.update(progress))
    }

    /// The pending update, if it is due.
    pub(crate) fn due(&mut self, now: Instant) -> Option<ProgressUpdate> {
        if self.next_due()? > now {
            return None;
        }
        let waits = self.pending.take()?;
        self.record(waits, now)
    }

    /// When the pending update is due; `None` if there is none.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.pending.as_ref().and(self.window_start).map(|began| began + WINDOW)
    }

    fn update(&self, progress: CallProgress) -> ProgressUpdate {
        ProgressUpdate {
            call_id: self.id.clone(),
            action: self.action.clone(),
            observer: self.observer.clone(),
            progress,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(progress: f64) -> CallProgress {
        CallProgress { progress, total: None, message: "".into() }
    }

    #[test]
    fn ten_are_told_at_once_and_of_the_rest_the_latest_when_it_is_time() {
        let mut followed = ProgressThrottle::new("c", "a", None);
        let now = Instant::now();
        let told: Vec<_> = (0..1000).filter_map(|step| followed.record(at(f64::from(step)), now)).collect();
        assert_eq!(told.len(), 10);
        assert_eq!(followed.next_due(), Some(now + WINDOW));
        assert!(followed.due(now + WINDOW / 2).is_none());
        let late = followed.due(now + WINDOW).expect("it is time");
        assert_eq!(late.progress.progress, 999.0);
        assert_eq!(followed.next_due(), None);
        assert!((0..100).filter_map(|_| followed.record(at(1000.0), now + WINDOW)).count() == 9);
    }
}
