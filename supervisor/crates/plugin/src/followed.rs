//! How far one call in flight has come, and how often that is told.

use std::time::Duration;

use tokio::time::Instant;

use crate::execute::{Follower, Progress};

/// How much of a call's progress is told within one [`WINDOW`]; what comes faster waits, and the latest wins. As many as an
/// eye can follow; a client that draws them needs no more, and one that forwards them pays for each.
const MAX_IN_WINDOW: u32 = 10;
/// See [`MAX_IN_WINDOW`].
const WINDOW: Duration = Duration::from_secs(1);

/// A call in flight on a process that tells how far its calls are. It goes with the call, so what is told of a call that is
/// over finds nobody.
#[derive(Debug)]
pub(crate) struct Followed {
    id: String,
    action: String,
    follower: Option<Follower>,
    /// Since when it is counted what was told.
    began: Option<Instant>,
    told: u32,
    /// Came too soon.
    waits: Option<Progress>,
}

/// Something to tell of a call.
#[derive(Debug)]
pub(crate) struct News {
    /// By which it goes on the plugin's wire.
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

    /// What waits, if its time has come.
    pub(crate) fn due(&mut self, now: Instant) -> Option<News> {
        if self.next_due()? > now {
            return None;
        }
        let waits = self.waits.take()?;
        self.take(waits, now)
    }

    /// When what waits is due; `None` if nothing does.
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
