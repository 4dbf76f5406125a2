//! Observations on their way to the agent: a bounded queue, which drops the oldest and counts them. With a spool they
//! outlive this process.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use talon_proto::agent::Observation;
use tokio::sync::Notify;

use crate::limits::{BATCH, OBSERVATIONS};
use crate::notice::{Notices, say};
use crate::spool::{Spool, SpooledRest, is_kept};

/// What is said under these keys: the file cannot be written; observations became old.
const UNWRITTEN: &str = "spool";
const OLD: &str = "old";

#[derive(Debug, Default)]
struct Waiting {
    observations: VecDeque<Observation>,
    dropped: u64,
    spool: Option<Spool>,
    /// A write failed, so that the file has something else: nothing may be appended until it was written anew.
    is_spool_behind: bool,
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
        let waiting = Waiting { observations, dropped, spool: Some(spool), is_spool_behind: false };
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
        let written = waiting.write(|spool, rest, _| {
            if is_full {
                spool.dropped()?;
            }
            rest.back().map_or(Ok(()), |newest| spool.added(newest))
        });
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

    /// The oldest ones, which stay until they are removed; and how many were dropped so far. What has waited for too
    /// long is dropped before.
    pub(crate) fn batch(&self, now_ms: u64) -> (Vec<Observation>, u64) {
        let mut waiting = self.lock();
        let is_changed = waiting.drop_old(now_ms);
        let written = if is_changed || waiting.is_spool_behind {
            // A clock that jumped may have put them between others, which no record can say.
            waiting.write(|spool, rest, dropped| spool.rewrite(rest.iter(), dropped))
        } else {
            Ok(())
        };
        let batch = (waiting.observations.iter().take(BATCH).cloned().collect(), waiting.dropped);
        drop(waiting);
        self.say(written);
        if is_changed {
            self.notices.once(OLD, "what the agent did not take for a day is dropped, and counted");
        }
        batch
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
        let written = if taken > 0 || dropped > 0 || waiting.is_spool_behind {
            waiting.write(|spool, rest, left| spool.taken(taken, dropped, rest.iter(), left))
        } else {
            Ok(())
        };
        drop(waiting);
        self.notices.over(OLD);
        self.say(written);
    }

    fn say(&self, written: io::Result<()>) {
        let Err(error) = written else {
            if self.notices.over(UNWRITTEN) {
                say("what waits for the agent is in its file again");
            }
            return;
        };
        let text = format!(
            "cannot write what waits for the agent to a file ({error}): it is lost if this process is killed"
        );
        self.notices.once(UNWRITTEN, text);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Has the file follow a change that was made here, with what is left and how many were dropped. After a failure it is
    /// written anew instead: records count those before them, so that another one would remove the wrong observations.
    fn write(
        &mut self,
        change: impl FnOnce(&mut Spool, &VecDeque<Observation>, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let Self { observations, dropped, spool: Some(spool), is_spool_behind } = self else { return Ok(()) };
        let written = if *is_spool_behind || spool.is_long() {
            spool.rewrite(observations.iter(), *dropped)
        } else {
            change(spool, observations, *dropped)
        };
        *is_spool_behind = written.is_err();
        written
    }

    /// Returns whether there were any.
    fn drop_old(&mut self, now_ms: u64) -> bool {
        let before = self.observations.len();
        self.observations.retain(|seen| is_kept(seen, now_ms));
        let old = u64::try_from(before - self.observations.len()).unwrap_or(u64::MAX);
        self.dropped = self.dropped.saturating_add(old);
        old > 0
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
