//! What people see.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use talon_agent_settings::Money;
use talon_event_bus::{Delivery, EventKind, Payload, Subscription, TooManySubscribersError};
use talon_proto::agent::ghost_event::Kind;
use talon_proto::agent::{
    CaughtUp, GetGhostResponse, GetShadowStatsResponse, Ghost, GhostEvent, ShadowEvent, ShadowLogEntry,
    ShadowState, ShadowTriggerStats,
};
use talon_store::Error;
use tokio::sync::watch;
use tokio::time::sleep;

use super::decisions::find;
use super::error::ShadowError;
use super::record::{SenderRecord, now, saturated};
use super::shadow_loop::ShadowLoop;

/// The wait after the store refused something: it is not asked as fast as it can refuse.
pub(super) const STORE_PAUSE: Duration = Duration::from_secs(5);

/// Whose ghosts are followed.
#[derive(Debug, Clone)]
pub(crate) enum Audience {
    Sender(Arc<str>),
    Everybody,
}

impl Audience {
    fn hears(&self, sender: &str) -> bool {
        match self {
            Self::Sender(own) => **own == *sender,
            Self::Everybody => true,
        }
    }
}

impl ShadowLoop {
    /// How the loop of a person is.
    pub(super) fn state_of(&self, record: Option<&SenderRecord>) -> ShadowState {
        let (keys, now) = (self.keys(), now());
        let policy = record.map(|record| &record.policy);
        let paused = policy.is_some_and(|policy| policy.is_paused(now));
        let mut muted: Vec<String> =
            keys.muted_repositories.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        muted.extend(policy.into_iter().flat_map(|policy| policy.muted.iter().cloned()));
        muted.sort();
        muted.dedup();
        ShadowState {
            enabled: keys.enabled,
            paused,
            paused_until_unix_ms: policy.and_then(|policy| policy.paused_until_ms).filter(|_| paused),
            muted_repositories: muted,
            local_only: keys.local_only,
            model: keys.model.clone().unwrap_or_default(),
            quiet_hours: keys.quiet_hours.clone().unwrap_or_default(),
            problem: String::new(),
        }
    }

    /// Ghosts, the latest first, after one of them if it is named.
    ///
    /// # Errors
    /// Those of the store, as of the others here: nobody is shown who may be forgotten.
    pub(crate) async fn list(
        &self,
        sender: Option<&str>,
        state: &str,
        after: &str,
        most: usize,
    ) -> Result<(Vec<Ghost>, String), Error> {
        let inner = self.current().await?;
        let ghosts = inner.stored.ghosts.values().rev().filter_map(|one| one.ghost.as_ref());
        let wanted = ghosts
            .filter(|ghost| sender.is_none_or(|sender| ghost.sender == sender))
            .filter(|ghost| state.is_empty() || ghost.state == state)
            .filter(|ghost| after.is_empty() || ghost.id.as_str() < after);
        Ok(page(wanted.cloned(), most, |ghost| &ghost.id))
    }

    /// The log, the latest first.
    pub(crate) async fn log(
        &self,
        sender: Option<&str>,
        after: &str,
        most: usize,
    ) -> Result<(Vec<ShadowLogEntry>, String), Error> {
        let inner = self.current().await?;
        let entries = inner.stored.log.values().rev();
        let wanted = entries
            .filter(|entry| sender.is_none_or(|sender| entry.sender == sender))
            .filter(|entry| after.is_empty() || entry.id.as_str() < after);
        Ok(page(wanted.cloned(), most, |entry| &entry.id))
    }

    /// A ghost, of this sender if one is given, and why it is there.
    ///
    /// # Errors
    /// [`ShadowError`]
    pub(crate) async fn get(&self, sender: Option<&str>, id: &str) -> Result<GetGhostResponse, ShadowError> {
        let inner = self.current().await?;
        find(&inner.stored.ghosts, sender, id).cloned()
    }

    /// What the triggers of a person led to.
    pub(crate) async fn stats(&self, sender: &str) -> Result<GetShadowStatsResponse, Error> {
        let inner = self.current().await?;
        let (keys, now) = (self.keys(), now());
        let unknown = SenderRecord::new(sender);
        let record = inner.stored.senders.get(sender).unwrap_or(&unknown);
        let (limits, spent) = (record.limits(&keys), record.policy.spent(now));
        let watcher = self.watchers.of(sender);
        let triggers = record.policy.triggers.iter().map(|(name, stats)| ShadowTriggerStats {
            trigger: name.clone(),
            observations: stats.observations,
            asked: stats.asked,
            ghosts: stats.ghosts,
            approved: stats.approved,
            dismissed: stats.dismissed,
            expired: stats.expired,
            rate_percent: stats.rate.percent(),
            held_back: stats
                .held_back
                .iter()
                .map(|(reason, count)| (reason.word().to_owned(), *count))
                .collect(),
        });
        Ok(GetShadowStatsResponse {
            triggers: triggers.collect(),
            ghosts_last_hour: record.policy.ghosts_within_hour(now),
            max_ghosts_per_hour: limits.max_ghosts_per_hour,
            cooldown_ms: limits.cooldown_ms,
            tokens_today: spent.tokens,
            day_budget_tokens: Some(limits.tokens_per_day),
            cost_today_pico_usd: spent.pico_usd,
            day_budget_pico_usd: keys.budget.per_day.map(Money::picodollars).map(saturated),
            dropped_by_watchers: self.dropped(),
            watcher_seen_unix_ms: watcher.as_ref().map(|heard| heard.unix_ms),
            watcher_limits: watcher.map(|heard| heard.limits).unwrap_or_default(),
            state: Some(self.state_of(Some(record))),
        })
    }

    /// Follows the changes of ghosts after a sequence; of now if there is none. With `events` also observations.
    pub(crate) fn follow(
        self: &Arc<Self>,
        audience: Audience,
        after: Option<u64>,
        events: bool,
    ) -> Result<GhostFollower, TooManySubscribersError> {
        let mut changed = self.changed.subscribe();
        changed.mark_changed();
        let seen = EventKind::ShadowEvent;
        let events = match &audience {
            _ if !events => None,
            Audience::Everybody => Some(self.bus.subscribe(seen)?),
            Audience::Sender(sender) => Some(self.bus.subscribe_for(seen, Arc::clone(sender))?),
        };
        Ok(GhostFollower {
            after: after.unwrap_or_else(|| *changed.borrow()),
            events,
            changed,
            of: Arc::clone(self),
            audience,
            ready: VecDeque::new(),
            caught_up: false,
        })
    }
}

/// The first so many, and after which one the next page begins; empty if there is none.
fn page<T>(mut all: impl Iterator<Item = T>, most: usize, id: impl Fn(&T) -> &String) -> (Vec<T>, String) {
    let found: Vec<T> = all.by_ref().take(most).collect();
    let next = match (all.next(), found.last()) {
        (Some(_), Some(last)) => id(last).clone(),
        _ => String::new(),
    };
    (found, next)
}

/// Follows ghosts. It holds no more than the changes of one look.
pub(crate) struct GhostFollower {
    of: Arc<ShadowLoop>,
    audience: Audience,
    after: u64,
    changed: watch::Receiver<u64>,
    events: Option<Subscription>,
    ready: VecDeque<Ghost>,
    caught_up: bool,
}

impl GhostFollower {
    /// The next event.
    pub(crate) async fn next(&mut self) -> GhostEvent {
        loop {
            if let Some(ghost) = self.ready.pop_front() {
                return event(Kind::Ghost(ghost));
            }
            if !self.caught_up && !self.changed.has_changed().unwrap_or_default() {
                self.caught_up = true;
                return event(Kind::CaughtUp(CaughtUp {}));
            }
            tokio::select! {
                changed = self.changed.changed() => match changed {
                    Ok(()) => self.look().await,
                    // The loop is held by this follower, so its sender is there.
                    Err(_) => return std::future::pending().await,
                },
                Some(seen) = next_event(&mut self.events), if self.caught_up => {
                    return event(Kind::Event(seen));
                }
            }
        }
    }

    async fn look(&mut self) {
        let inner = loop {
            match self.of.current().await {
                Ok(inner) => break inner,
                Err(error) => {
                    let error = talon_error_chain::error_chain(&error);
                    tracing::warn!(error, "who follows ghosts waits until the store answers");
                    sleep(STORE_PAUSE).await;
                }
            }
        };
        self.changed.mark_unchanged();
        let ghosts = inner.stored.ghosts.values().filter_map(|one| one.ghost.as_ref());
        let mut new: Vec<Ghost> = ghosts
            .filter(|ghost| ghost.sequence > self.after && self.audience.hears(&ghost.sender))
            .cloned()
            .collect();
        new.sort_by_key(|ghost| ghost.sequence);
        self.after = self.after.max(new.last().map_or(0, |ghost| ghost.sequence));
        self.ready.extend(new);
    }
}

/// The next observation; those that were missed are left out. It waits for ever if none are followed.
async fn next_event(events: &mut Option<Subscription>) -> Option<ShadowEvent> {
    let Some(events) = events else { return std::future::pending().await };
    loop {
        if let Delivery::Event(event) = events.next().await?
            && let Some(Payload::ShadowEvent(seen)) = &event.payload
        {
            return Some(seen.clone());
        }
    }
}

fn event(kind: Kind) -> GhostEvent {
    GhostEvent { kind: Some(kind) }
}

#[cfg(test)]
mod tests {
    use talon_event_bus::{EventBus, MAX_WAITING, Subject};

    use super::*;

    #[tokio::test]
    async fn who_missed_observations_hears_the_next_one() {
        let bus = EventBus::default();
        let mut events = bus.subscribe(EventKind::ShadowEvent).ok();
        let seen = |sender: &str| ShadowEvent { sender: sender.to_owned(), ..ShadowEvent::default() };
        bus.emit(Subject::NOBODY, Payload::ShadowEvent(seen("missed")));
        for _ in 0..MAX_WAITING {
            bus.emit(Subject::NOBODY, Payload::ShadowEvent(seen("heard")));
        }
        assert_eq!(next_event(&mut events).await.expect("an observation").sender, "heard");
    }
}
