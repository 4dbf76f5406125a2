//! Observations on their way to the agent: a bounded queue, which drops the oldest and counts them. With a spool they
//! outlive this process.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use talon_proto::agent::Observation;
use tokio::sync::Notify;

use crate::limits::{BATCH, OBSERVATIONS};
use crate::notice::Notices;
use crate::spool::{Spool, SpooledRest};

#[derive(Debug, Default)]
struct Waiting {
    observations: VecDeque<Observation>,
    dropped: u64,
    spool: Option<Spool>,
}

/// Between the detectors and the sender.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Notify,
    notices: Notices,
}

impl Queue {
    /// One that begins with what is left over in a spool, and keeps it.
    pub(crate) fn spooled(spool: Spool, rest: SpooledRest, notices: Notices) -> Self {
        let (observations, dropped) = (rest.observations.into(), rest.dropped);
        let waiting = Waiting { observations, dropped, spool: Some(spool) };
        Self { waiting: Mutex::new(waiting), filled: Notify::new(), notices }
    }

    /// Adds one; returns whether another was dropped for it.
    pub(crate) fn push(&self, observation: Observation) -> bool {
        let mut waiting = self.lock();
        let is_full = waiting.observations.len() >= OBSERVATIONS;
        if is_full {
            waiting.observations.pop_front();
            waiting.dropped = waiting.dropped.saturating_add(1);
        }
        waiting.observations.push_back(observation);
        let written = waiting.spool_added(is_full);
        drop(waiting);
        self.say(written);
        self.filled.notify_one();
        is_full
    }

    /// Waits until there is something. Cancel safe.
    pub(crate) async fn filled(&self) {
        while self.is_empty() {
            self.filled.notified().await;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().observations.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().observations.len()
    }

    /// The oldest ones, which stay until they are removed; and how many were dropped so far.
    pub(crate) fn batch(&self) -> (Vec<Observation>, u64) {
        let waiting = self.lock();
        (waiting.observations.iter().take(BATCH).cloned().collect(), waiting.dropped)
    }

    /// The agent has these; and was told of so many that were dropped. Others may have been dropped meanwhile.
    pub(crate) fn sent(&self, batch: &[Observation], dropped: u64) {
        let mut waiting = self.lock();
        let is_sent = |observation: &Observation| batch.iter().any(|sent| sent.id == observation.id);
        let before = waiting.observations.len();
        // All of them are at the front.
        while waiting.observations.front().is_some_and(is_sent) {
            waiting.observations.pop_front();
        }
        waiting.dropped = waiting.dropped.saturating_sub(dropped);
        let taken = before - waiting.observations.len();
        let written = if taken > 0 || dropped > 0 { waiting.spool_taken(taken, dropped) } else { Ok(()) };
        drop(waiting);
        self.say(written);
    }

    fn say(&self, written: io::Result<()>) {
        if let Err(error) = written {
            let text = format!(
                "cannot write what waits for the agent to a file ({error}): it is lost if this process is killed"
            );
            self.notices.once("spool", text);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// The newest one, for which the oldest was dropped if there was no room.
    fn spool_added(&mut self, is_full: bool) -> io::Result<()> {
        let Self { observations, dropped, spool: Some(spool) } = self else { return Ok(()) };
        if spool.is_long() {
            return spool.rewrite(observations.iter(), *dropped);
        }
        if is_full {
            spool.dropped()?;
        }
        observations.back().map_or(Ok(()), |newest| spool.added(newest))
    }

    fn spool_taken(&mut self, count: usize, told: u64) -> io::Result<()> {
        let Self { observations, dropped, spool: Some(spool) } = self else { return Ok(()) };
        spool.taken(count, told, observations.iter(), *dropped)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn observation(id: usize) -> Observation {
        Observation { id: id.to_string(), ..Observation::default() }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The same holds over a kill at any moment.
        // Promises: SHADOW-38
        #[test]
        fn over_a_kill_every_observation_is_accounted_for(steps in prop::collection::vec((0usize..200, any::<bool>()), 1..6)) {
            let dir = tempfile::tempdir().unwrap();
            let spooled = || {
                let (spool, rest) = Spool::open(dir.path(), 0).unwrap();
                Queue::spooled(spool, rest, Notices::default())
            };
            let (mut queue, mut pushed) = (spooled(), 0);
            for (count, acknowledged) in steps {
                for _ in 0..count {
                    queue.push(observation(pushed));
                    pushed += 1;
                }
                if acknowledged {
                    let (batch, dropped) = queue.batch();
                    queue.sent(&batch, dropped);
                }
                let before = queue.lock();
                let (observations, dropped) = (before.observations.clone(), before.dropped);
                drop(before);
                drop(queue);
                queue = spooled();
                let after = queue.lock();
                prop_assert_eq!((&after.observations, after.dropped), (&observations, dropped));
                drop(after);
            }
        }

        /// Whatever happens in which order: each one is sent, waits, or was counted as dropped.
        // Promises: SHADOW-77
        #[test]
        fn every_observation_is_accounted_for(steps in prop::collection::vec((0usize..400, any::<bool>()), 1..20)) {
            let queue = Queue::default();
            let (mut pushed, mut sent, mut told) = (0, 0, 0);
            for (count, acknowledged) in steps {
                let (batch, dropped) = queue.batch();
                for _ in 0..count {
                    queue.push(observation(pushed));
                    pushed += 1;
                }
                prop_assert!(queue.len() <= OBSERVATIONS);
                if acknowledged {
                    let before = queue.len();
                    queue.sent(&batch, dropped);
                    sent += before - queue.len();
                    told += dropped;
                }
            }
            let (_, dropped) = queue.batch();
            prop_assert_eq!(sent as u64 + queue.len() as u64 + told + dropped, pushed as u64);
        }
    }
}
