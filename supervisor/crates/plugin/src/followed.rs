//! The progress of one call in flight, and how often it is published.

use std::time::Duration;

use tokio::time::Instant;

use crate::execute::{Follower, Progress};

/// How many progress updates of a call are published within one [`WINDOW`]; later ones wait, and only the
/// latest is kept. Ten a second is as fast as people can read; clients gain nothing from more, and forwarding
/// each one costs.
const MAX_IN_WINDOW: u32 = 10;
/// See [`MAX_IN_WINDOW`].
const WINDOW: Duration = Duration::from_secs(1);

/// Tracks the progress of one call in flight. It is dropped with the call, so that reports about a finished
/// call have no effect.
#[derive(Debug)]
pub(crate) struct Followed {
    id: String,
    action: String,
    follower: Option<Follower>,
    /// When the current window began.
    began: Option<Instant>,
    told: u32,
    /// The latest update that came too soon.
    waits: Option<Progress>,
}

/// A progress update to publish.
#[derive(Debug)]
pub(crate) struct News {
    /// The call's id on the plugin's wire.
    pub(crate) call_id: String,
    pub(crate) action: String,
    pub(crate) follower: Option<Follower>,
    pub(crate) progress: Progress,
}

impl Followed {
    pub(crate) fn new(id: &str, action: &str, follower: Option<Follower>) -> Self {
        Self { id: id.to_owned(), action: action.to_owned(), follower, began: None, told: 0, waits: None }
    }

    pub(crate) fn is(&self, call_id: &str) -> bool {
        self.id == call_id
    }

    pub(crate) fn take(&mut self, progress: Progress, now: Instant) -> Option<News> {
        if self.began.is_none_or(|began| now >= began + WINDOW) {
            (self.began, self.told) = (Some(now), 0);
        }
        if self.told == MAX_IN_WINDOW {
            self.waits = Some(progress);
            return None;
        }
        self.told += 1;
        self.waits = None;
        Some(self.news(progress))
    }

    /// The pending update, if it is due.
    pub(crate) fn due(&mut self, now: Instant) -> Option<News> {
        if self.next_due()? > now {
            return None;
        }
        let waits = self.waits.take()?;
        self.take(waits, now)
    }

    /// When the pending update is due; `None` if there is none.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.waits.as_ref().and(self.began).map(|began| began + WINDOW)
    }

    fn news(&self, progress: Progress) -> News {
        News {
            call_id: self.id.clone(),
            action: self.action.clone(),
            follower: self.follower.clone(),
            progress,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(progress: f64) -> Progress {
        Progress { progress, total: None, message: "".into() }
    }

    #[test]
    fn ten_are_told_at_once_and_of_the_rest_the_latest_when_it_is_time() {
        let mut followed = Followed::new("c", "a", None);
        let now = Instant::now();
        let told: Vec<_> = (0..1000).filter_map(|step| followed.take(at(f64::from(step)), now)).collect();
        assert_eq!(told.len(), 10);
        assert_eq!(followed.next_due(), Some(now + WINDOW));
        assert!(followed.due(now + WINDOW / 2).is_none());
        let late = followed.due(now + WINDOW).expect("it is time");
        assert_eq!(late.progress.progress, 999.0);
        assert_eq!(followed.next_due(), None);
        assert!((0..100).filter_map(|_| followed.take(at(1000.0), now + WINDOW)).count() == 9);
    }
}
