//! One process of a service: given what it should have, and heard, until it ends.

use std::os::fd::OwnedFd;
use std::time::Duration;

use talon_control::ControlError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::held::Held;
use super::kind::{Kind, Line};

/// What a service may say in [`WINDOW`]. It says something when its database stops or begins to answer, when it needs something of
/// us, and in answer to each reload: a few words a minute. One that says more is not what it should be. Its session is ended, and
/// with that it. A number for its whole life would end one that lives for long.
const MAX_SAID: u32 = 100;
/// What they are counted in.
const WINDOW: Duration = Duration::from_mins(1);

/// From its start to its end, or ours. Our end of the control socket is dropped with this, and the process ends by that.
pub(super) async fn run<K: Kind>(held: Held<K>, control: OwnedFd, ends: CancellationToken) {
    let ended = async {
        let line = Line::<K>::new(control).map_err(ControlError::from)?;
        talk(&held, &line).await
    };
    match ends.run_until_cancelled(ended).await {
        // Its exit says the rest.
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

/// How much was said.
struct Said {
    since: Instant,
    words: u32,
}

impl Said {
    fn from(since: Instant) -> Self {
        Self { since, words: 0 }
    }

    /// Whether one more word may be.
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
