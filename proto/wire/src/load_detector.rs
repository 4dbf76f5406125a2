//! Whether a connection is busy, from how many requests arrive together.

use crate::lazy_writable::BusyFlag;

/// From so many requests at once on the connection counts as busy. One more than a client with a single
/// caller ever sends at once: a call, and the end of one.
const BUSY_REQUESTS: u32 = 3;
/// After so many turns in a row with fewer requests the connection no longer counts as busy.
const CALM_TURNS: u32 = 64;

/// Detects whether a server's connection is busy, for its [`LazyWritable`](crate::LazyWritable).
#[derive(Debug, Default)]
pub struct LoadDetector {
    busy: BusyFlag,
    requests: u32,
    calm_turns: u32,
}

impl LoadDetector {
    /// A detector that sets this flag.
    #[must_use]
    pub fn new(busy: BusyFlag) -> Self {
        Self { busy, ..Self::default() }
    }

    /// Notes a request.
    pub fn request(&mut self) {
        self.requests += 1;
        if self.requests >= BUSY_REQUESTS {
            self.calm_turns = 0;
            self.busy.set(true);
        }
    }

    /// Notes that no further request is there.
    pub fn turn(&mut self) {
        if std::mem::take(&mut self.requests) < BUSY_REQUESTS {
            self.calm_turns = self.calm_turns.saturating_add(1);
            if self.calm_turns == CALM_TURNS {
                self.busy.set(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_busy_while_requests_come_together() {
        let flag = BusyFlag::default();
        let mut load = LoadDetector::new(flag.clone());
        let mut turn = |requests: u32| {
            (0..requests).for_each(|_| load.request());
            load.turn();
            flag.is_set()
        };
        assert!(!turn(BUSY_REQUESTS - 1));
        assert!(turn(BUSY_REQUESTS));
        assert!((1..CALM_TURNS).all(|_| turn(1)), "a pause is no end");
        assert!(!turn(0));
        assert!(turn(100));
    }
}
