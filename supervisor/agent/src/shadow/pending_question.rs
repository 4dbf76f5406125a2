//! Questions to models: which one is next, and what is noted of it before it is asked and after it was answered.

use std::ops::Bound;
use std::sync::Arc;

use talon_proto::agent::{GetGhostResponse, Observation, ShadowLogEntry};
use talon_store::Error;

use super::observation::fingerprint;
use super::record::now;
use super::shadow_loop::{ASKING, FAILED, ShadowLoop, ShadowState};

/// A question that is to be asked.
#[derive(Debug, Clone)]
pub(super) struct PendingQuestion {
    pub(super) sender: String,
    /// The id of the log's entry, and of its ghost.
    pub(super) entry: String,
    pub(super) observation: Observation,
    /// What was spent today before.
    pub(super) spent_pico_usd: u64,
}

impl ShadowLoop {
    /// The question that is to be asked next: that of the first person after this one, by their names and round.
    pub(super) async fn next_question(&self, last: &str) -> Option<PendingQuestion> {
        let inner = self.inner.lock().await;
        let (senders, elsewhere) = (&inner.stored.senders, &inner.asked_elsewhere);
        let after = senders.range::<str, _>((Bound::Excluded(last), Bound::<&str>::Unbounded));
        let others = senders.range::<str, _>((Bound::<&str>::Unbounded, Bound::Included(last)));
        after.chain(others).find_map(|(_, record)| {
            let id = record.policy.asking.as_deref()?;
            let entry = record.entry.clone().filter(|entry| elsewhere.get(&record.sender) != Some(entry))?;
            Some(PendingQuestion {
                sender: record.sender.clone(),
                entry,
                // It is stored with what is asked about.
                observation: record
                    .observation(id)
                    .unwrap_or_else(|| Observation { id: id.to_owned(), ..Observation::default() }),
                spent_pico_usd: record.policy.spent(now()).pico_usd,
            })
        })
    }

    /// What a question led to, if it was answered already: this process was killed, or the store refused something, before that was
    /// noted of its sender. It has what the answer cost, which does not count yet.
    pub(super) async fn answered_entry(&self, entry: &str) -> Option<ShadowLogEntry> {
        let inner = self.inner.lock().await;
        let of_ghost = inner.stored.ghosts.get(entry).and_then(|one| one.sent.clone());
        of_ghost.or_else(|| inner.stored.log.get(entry).filter(|known| known.outcome != ASKING).cloned())
    }

    /// Notes what is sent to a model, before it is sent. `false` if the person was forgotten: then nothing of it stays, and nothing may be
    /// sent.
    pub(super) async fn note(self: &Arc<Self>, entry: ShadowLogEntry) -> Result<bool, Error> {
        self.run_to_completion(|this| async move {
            let mut inner = this.current().await?;
            if !inner.stored.senders.contains_key(&entry.sender) {
                return Ok(false);
            }
            this.store.put_log(&entry).await?;
            inner.stored.log.insert(entry.id.clone(), entry.clone());
            drop(inner);
            // Another agent that forgets the person may have looked for what to remove before this was there.
            let mut inner = this.current().await?;
            if inner.stored.senders.contains_key(&entry.sender) {
                return Ok(true);
            }
            this.forget_question(&mut inner, &entry.id).await?;
            Ok(false)
        })
        .await
    }

    /// Notes what became of a question: the ghost first, then the log, then that nothing is asked any more. After a kill in
    /// between the rest is made up for.
    pub(super) async fn settle(
        self: &Arc<Self>,
        question: PendingQuestion,
        entry: ShadowLogEntry,
        ghost: Option<GetGhostResponse>,
    ) -> Result<(), Error> {
        self.run_to_completion(|this| async move {
            let mut inner = this.current().await?;
            // Who was forgotten meanwhile gets no ghost, and nothing of the question stays.
            let Some(record) = inner.stored.senders.get(&question.sender) else {
                return this.forget_question(&mut inner, &entry.id).await;
            };
            if record.entry.as_deref() != Some(&*entry.id) {
                return Ok(());
            }
            let id = entry.id.clone();
            let made = ghost.is_some() || inner.stored.ghosts.contains_key(&entry.id);
            if let Some(mut found) = ghost {
                found.sent = Some(entry.clone());
                this.create(&mut inner, &entry.id, found).await?;
            }
            this.store.put_log(&entry).await?;
            this.metrics.count_shadow_question(&entry);
            let (tokens, cost) = (entry.input_tokens + entry.output_tokens, entry.cost_pico_usd);
            let failed = entry.outcome == FAILED;
            inner.stored.log.insert(entry.id.clone(), entry);
            let (observation, moment) = (&question.observation, now());
            while let Some(mut record) = inner.stored.senders.get(&question.sender).cloned() {
                record.policy.spend(tokens, cost, moment);
                // Another agent may have asked as well, and noted its answer: then this one's cost is all that is new.
                if record.entry.as_deref() == Some(&*id) {
                    record.policy.answered(&observation.id, &observation.trigger, made, moment);
                    if failed {
                        // It may come again: nothing was told of it.
                        record.policy.forget_finding(&fingerprint(observation));
                    }
                    record.entry = None;
                }
                record.tidy(moment);
                if this.store_sender(&mut inner, record).await? {
                    return Ok(());
                }
            }
            // Another agent forgot the person meanwhile.
            this.forget_question(&mut inner, &id).await
        })
        .await
    }

    /// Nothing is left of a question whose person was forgotten.
    async fn forget_question(&self, inner: &mut ShadowState, id: &str) -> Result<(), Error> {
        self.store.remove_ghost(id).await?;
        inner.stored.ghosts.remove(id);
        self.store.remove_log(id).await?;
        inner.stored.log.remove(id);
        Ok(())
    }
}
