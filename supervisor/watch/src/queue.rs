//! Observations on their way to the agent: a bounded queue, which drops the oldest and counts them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use talon_proto::agent::Observation;
use tokio::sync::Notify;

use crate::limits::{BATCH, OBSERVATIONS};

#[derive(Debug, Default)]
struct Waiting {
    observations: VecDeque<Observation>,
    dropped: u64,
}

/// Between the detectors and the sender.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Notify,
}

impl Queue {
    /// Adds one; returns whether another was dropped for it.
    pub(crate) fn push(&self, observation: Observation) -> bool {
        let mut waiting = self.lock();
        let is_full = waiting.observations.len() >= OBSERVATIONS;
        if is_full {
            waiting.observations.pop_front();
            waiting.dropped = waiting.dropped.saturating_add(1);
        }
        waiting.observations.push_back(observation);
        drop(waiting);
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
        // All of them are at the front.
        while waiting.observations.front().is_some_and(is_sent) {
            waiting.observations.pop_front();
        }
        waiting.dropped = waiting.dropped.saturating_sub(dropped);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
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
