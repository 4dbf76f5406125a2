//! How long to wait for the next supervisor.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How long a client that was connected looks for the next supervisor: one that starts with many plugins
/// takes some seconds until it listens. Then the request fails.
pub const RECONNECT_WINDOW: Duration = Duration::from_secs(15);
/// The pause before the first retry; a supervisor that takes over is there at once.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The longest pause, and so the longest delay until a client notices the supervisor.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The retry window of one request. It starts with the first failure, and again after each success.
#[derive(Debug)]
pub(crate) struct RetryWindow {
    /// The caller's own deadline, which also ends the retries.
    deadline: Option<Instant>,
    until: Option<Instant>,
    pause: Duration,
}

impl RetryWindow {
    pub(crate) fn new(deadline: Option<Instant>) -> Self {
        Self { deadline, until: None, pause: FIRST_PAUSE }
    }

    /// Waits before the next attempt. False if there is none.
    pub(crate) async fn wait(&mut self) -> bool {
        let now = Instant::now();
        let window = *self.until.get_or_insert(now + RECONNECT_WINDOW);
        let until = self.deadline.map_or(window, |deadline| deadline.min(window));
        let next = now + self.pause;
        if next >= until {
            return false;
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        sleep_until(next).await;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: CLI-37
    #[tokio::test(start_paused = true)]
    async fn patience_ends_with_the_window_or_the_callers_own() {
        let began = Instant::now();
        let mut patience = RetryWindow::new(None);
        let mut tries = 0;
        while patience.wait().await {
            tries += 1;
        }
        assert!(began.elapsed() <= RECONNECT_WINDOW && tries > 50, "{tries}");

        let deadline = Instant::now() + Duration::from_millis(100);
        let mut patience = RetryWindow::new(Some(deadline));
        while patience.wait().await {}
        assert!(Instant::now() <= deadline);
    }
}
