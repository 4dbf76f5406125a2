//! What time changes, and what is removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use talon_agent_settings::milliseconds;
use talon_proto::agent::{GetGhostResponse, Ghost, ShadowLogEntry};
use talon_shadow_policy::{CANDIDATE_LIFETIME_MS, GhostEnd};
use talon_store::Error;

use super::record::{SenderRecord, now, unix_ms};
use super::shadow_loop::{EXPIRED, SNOOZED, ShadowLoop, ShadowState, WAITING};

/// The most ghosts that are kept, of everybody. At ten an hour of one person that is three weeks day and night.
const MAX_GHOSTS: usize = 5000;
/// The most entries of the log that are kept.
const MAX_LOG: usize = 10_000;

impl ShadowLoop {
    /// Has time pass: ghosts expire, snoozed ones wait again, old ones and old entries of the log are removed.
    pub(super) async fn tidy(self: &Arc<Self>) -> Result<(), Error> {
        self.run_to_completion(|this| async move {
            let mut inner = this.current().await?;
            let (unix_now, lifetime) = (unix_ms(), milliseconds(this.keys().expires_after.get()));
            let due: Vec<(String, Ghost)> = inner
                .stored
                .ghosts
                .iter()
                .filter_map(|(id, one)| {
                    Some((id.clone(), after_time(one.ghost.as_ref()?, unix_now, lifetime)?))
                })
                .collect();
            for (_, ghost) in due {
                let end = (ghost.state == EXPIRED).then_some(GhostEnd::Expired);
                this.put(&mut inner, ghost, end).await?;
            }
            this.drop_candidates(&mut inner).await?;
            this.forget_old(&mut inner, unix_now).await
        })
        .await
    }

    /// Findings that waited too long for a boundary go, also if nothing more is observed: what they quote is not kept.
    async fn drop_candidates(&self, inner: &mut ShadowState) -> Result<(), Error> {
        let moment = now();
        let is_over = |record: &&SenderRecord| {
            record.policy.waiting.iter().any(|one| moment.since(one.at_ms) >= CANDIDATE_LIFETIME_MS)
        };
        // One that another agent changed meanwhile is looked at again.
        while let Some(mut record) = inner.stored.senders.values().find(is_over).cloned() {
            record.tidy(moment);
            self.store_sender(inner, record).await?;
        }
        Ok(())
    }

    async fn forget_old(&self, inner: &mut ShadowState, now: u64) -> Result<(), Error> {
        let kept_ms = u64::from(self.keys().keep_days) * 24 * 60 * 60 * 1000;
        let old = |at: u64| now.saturating_sub(at) > kept_ms;
        let over: Vec<(String, u64)> = inner
            .stored
            .ghosts
            .iter()
            .filter_map(|(id, one)| Some((id, one.ghost.as_ref()?)))
            .filter(|(_, ghost)| ghost.state != WAITING && ghost.state != SNOOZED)
            .map(|(id, ghost)| (id.clone(), ghost.created_unix_ms))
            .collect();
        let too_many = inner.stored.ghosts.len().saturating_sub(MAX_GHOSTS);
        for (_, (id, _)) in
            over.into_iter().enumerate().filter(|(at, (_, when))| *at < too_many || old(*when))
        {
            self.store.remove_ghost(&id).await?;
            inner.stored.ghosts.remove(&id);
        }
        let too_many = inner.stored.log.len().saturating_sub(MAX_LOG);
        let entries = inner.stored.log.iter().enumerate();
        let gone: Vec<String> = entries
            .filter(|(at, (_, entry))| *at < too_many || old(entry.unix_ms))
            .map(|(_, (id, _))| id.clone())
            .collect();
        for id in gone {
            self.store.remove_log(&id).await?;
            inner.stored.log.remove(&id);
        }
        Ok(())
    }

    /// When time next changes something, in milliseconds since 1970.
    pub(super) async fn next_change(&self) -> Option<u64> {
        let inner = self.inner.lock().await;
        let ghosts = inner.stored.ghosts.values().filter_map(|one| one.ghost.as_ref());
        ghosts.filter_map(due_at).min()
    }

    /// Removes everything of a person, also what another agent stored. Returns how many ghosts that were.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn forget_sender(self: &Arc<Self>, sender: &str) -> Result<u64, Error> {
        let sender = sender.to_owned();
        self.run_to_completion(|this| async move {
            let mut inner = this.inner.lock().await;
            // First: another agent that is told an answer then finds nobody to note it of, and leaves nothing.
            this.store.remove_sender(&sender).await?;
            // Before it is looked what is there: what another agent stores afterwards, that one finds to be of nobody, and removes.
            this.store.advance_forget_epoch().await?;
            inner.stored.senders.remove(&sender);
            inner.stored.sender_values.remove(&sender);
            inner.asked_elsewhere.remove(&sender);
            this.watchers.forget(&sender);
            let on_disk = this.store.load().await?;
            let mut forgotten = 0;
            for id in by_sender(&on_disk.ghosts, sender_of_ghost, &sender) {
                // The goal last: who approves the ghost meanwhile stores the goal before the ghost. One that a kill leaves is closed.
                this.store.remove_ghost(&id).await?;
                this.store.remove_goal(&id).await?;
                forgotten += 1;
            }
            for id in by_sender(&on_disk.log, sender_of_entry, &sender) {
                this.store.remove_log(&id).await?;
            }
            // Those that another agent removed are known here nevertheless.
            for id in by_sender(&inner.stored.ghosts, sender_of_ghost, &sender) {
                inner.stored.goals.remove(&id);
                inner.stored.ghosts.remove(&id);
            }
            for id in by_sender(&inner.stored.log, sender_of_entry, &sender) {
                inner.stored.log.remove(&id);
            }
            // Once more: whoever looks now finds nothing. Also of nobody who was there: a kill in between leaves no other agent with more.
            this.store.advance_forget_epoch().await?;
            Ok(forgotten)
        })
        .await
    }
}

/// When time changes a ghost.
fn due_at(ghost: &Ghost) -> Option<u64> {
    match ghost.state.as_str() {
        WAITING => Some(ghost.expires_unix_ms),
        SNOOZED => ghost.snoozed_until_unix_ms,
        _ => None,
    }
}

/// The ghost after its time, if that has come. One that was snoozed waits again for as long as a new one.
fn after_time(ghost: &Ghost, now: u64, lifetime: u64) -> Option<Ghost> {
    let due = due_at(ghost).filter(|at| *at <= now)?;
    if ghost.state == SNOOZED {
        let expires_unix_ms = due.saturating_add(lifetime);
        let state = WAITING.to_owned();
        return Some(Ghost { state, snoozed_until_unix_ms: None, expires_unix_ms, ..ghost.clone() });
    }
    Some(Ghost { state: EXPIRED.to_owned(), ..ghost.clone() })
}

fn sender_of_ghost(one: &GetGhostResponse) -> Option<&str> {
    one.ghost.as_ref().map(|ghost| ghost.sender.as_str())
}

fn sender_of_entry(entry: &ShadowLogEntry) -> Option<&str> {
    Some(&entry.sender)
}

fn by_sender<T>(all: &BTreeMap<String, T>, of: impl Fn(&T) -> Option<&str>, sender: &str) -> Vec<String> {
    let theirs = all.iter().filter(|(_, one)| of(one) == Some(sender));
    theirs.map(|(id, _)| id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_often_a_ghost_is_snoozed_it_waits_as_long_as_a_new_one() {
        let mut ghost = Ghost { created_unix_ms: 1000, expires_unix_ms: 1100, ..Ghost::default() };
        for until in [1_050, 50_000, 900_000] {
            ghost.state = SNOOZED.to_owned();
            ghost.snoozed_until_unix_ms = Some(until);
            assert_eq!(after_time(&ghost, until - 1, 100), None);
            ghost = after_time(&ghost, until, 100).expect("its time has come");
            assert_eq!((ghost.state.as_str(), ghost.expires_unix_ms), (WAITING, until + 100));
        }
        let over = after_time(&ghost, ghost.expires_unix_ms, 100).expect("it is over");
        assert_eq!(over.state, EXPIRED);
    }
}
