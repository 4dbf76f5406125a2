//! The session with one process of a service: sends it what it should have, and receives its messages, until
//! it ends.

use std::os::fd::OwnedFd;
use std::time::Duration;

use talon_control::ControlError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::held::Held;
use super::kind::{Kind, Line};

/// Maximum number of messages from a service in [`WINDOW`]. It reports changes of its database's
/// availability, requests, and answers to reloads: a few messages a minute. One that sends more is
/// misbehaving; its session is ended, and the process with it. A limit for the whole lifetime would end a
/// service that runs for long.
const MAX_SAID: u32 = 100;
/// The window in which messages are counted.
const WINDOW: Duration = Duration::from_mins(1);

/// Runs until the process ends or `ends` is cancelled. This drops our end of the control socket, which makes
/// the process end.
pub(super) async fn run<K: Kind>(held: Held<K>, control: OwnedFd, ends: CancellationToken) {
    let ended = async {
        let line = Line::<K>::new(control).map_err(ControlError::from)?;
        talk(&held, &line).await
    };
    match ends.run_until_cancelled(ended).await {
        // The exit of the process reports the rest.
        None | Some(Ok(())) => {}
        Some(Err(error)) => tracing::error!(%error, "the control socket of the {} is closed", K::CALLED),
    }
}

async fn talk<K: Kind>(held: &Held<K>, line: &Line<K>) -> Result<(), ControlError> {
    let mut given = K::Given::default();
    let mut said = Said::from(Instant::now());
    loop {
        K::give(held, line, &mut given).await?;
        tokio::select! {
            packet = line.receive() => match packet? {
                None => return Ok(()),
                Some(_) if !said.one_more(Instant::now()) => {
                    tracing::error!("the {} says too much; it is ended", K::CALLED);
                    return Ok(());
                }
                Some(packet) => K::hear(held, &mut given, packet.message),
            },
            () = held.change() => {}
        }
    }
}

/// Counts messages in a window.
struct Said {
    since: Instant,
    words: u32,
}

impl Said {
    fn from(since: Instant) -> Self {
        Self { since, words: 0 }
    }

    /// Whether one more message is allowed.
    fn one_more(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= WINDOW {
            *self = Self::from(now);
        }
        self.words = self.words.saturating_add(1);
        self.words <= MAX_SAID
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_a_little_for_long_is_heard() {
        let start = Instant::now();
        let mut said = Said::from(start);
        let words = (0..MAX_SAID * 20).map(|at| start + WINDOW / 50 * at);
        assert!(words.into_iter().all(|at| said.one_more(at)));
    }

    #[test]
    fn who_says_too_much_at_once_is_not() {
        let start = Instant::now();
        let mut said = Said::from(start);
        let heard = (0..MAX_SAID + 5).filter(|_| said.one_more(start)).count();
        assert_eq!(heard, MAX_SAID as usize);
        assert!(said.one_more(start + WINDOW));
    }
}
