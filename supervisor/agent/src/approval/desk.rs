//! The queue of calls that wait for a person's approval.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use talon_agent_settings::{Ask, ConfirmKeys};
use talon_proto::agent;
use talon_proto::agent::chunk::Kind;
use talon_store::KeyValues;

use super::error::{DecideError, MAX_REASON_BYTES, OpenError};
use super::parked::Found;
use super::parking::{Parking, pending};
use super::policy::{Asked, Policy};
use super::record::{Record, State};
use super::shelf::Shelf;
use super::words::too_large;
use crate::driver::{Caller, Confirm, Confirmed, Listener};

/// The queue of calls that wait for a person's approval. Durable: a state is on disk before anyone sees it.
pub struct Desk {
    parking: Arc<Parking>,
    settings: RwLock<Arc<Settings>>,
}

struct Settings {
    policy: Policy,
    expires_after: Duration,
}

impl Settings {
    fn new(keys: &ConfirmKeys) -> Arc<Self> {
        Arc::new(Self { policy: Policy::new(keys), expires_after: keys.expires_after.get() })
    }
}

impl Desk {
    /// Opens the queue with the calls that were parked before a restart.
    ///
    /// # Errors
    /// [`OpenError`]
    pub async fn open(kv: Arc<dyn KeyValues>, keys: &ConfirmKeys) -> Result<Arc<Self>, OpenError> {
        let parking = Parking::open(Shelf::new(kv)).await?;
        drop(parking.now().await);
        Ok(Arc::new(Self { parking: Arc::new(parking), settings: RwLock::new(Settings::new(keys)) }))
    }

    /// Applies a new configuration to later calls. Calls that are already parked keep their terms.
    pub fn configure(&self, keys: &ConfirmKeys) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Settings::new(keys);
    }

    /// Returns when an action needs approval, without looking at patterns.
    #[must_use]
    pub fn ask(&self, plugin: &str, action: &str, read_only: bool) -> Ask {
        self.settings().policy.ask(plugin, action, read_only)
    }

    /// Lists parked calls, oldest first. With `all`, also the decided ones that are still stored.
    pub async fn list(&self, all: bool) -> Vec<agent::Approval> {
        let parked = self.parking.now().await;
        let wanted = parked.values().filter(|one| all || one.record.state == State::Pending);
        wanted.map(|one| one.record.shown()).collect()
    }

    /// Counts the calls that wait, of one session or of all.
    pub async fn pending(&self, session: Option<&str>) -> usize {
        let parked = self.parking.now().await;
        pending(&parked, session)
    }

    /// Returns one call.
    pub async fn get(&self, id: &str) -> Option<agent::Approval> {
        let parked = self.parking.now().await;
        parked.get(id).map(|one| one.record.shown())
    }

    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Cancels the calls that a turn's sub-agents parked: after a restart the turn is resumed, but its sub-agents are
    /// not.
    pub(crate) async fn forget_subagents(&self, session: &str, turn: u64) {
        let session = session.to_owned();
        self.parking.whole(|parking| async move { parking.forget_subagents(&session, turn).await }).await;
    }

    /// Approves or denies a call, for good. `digest` is the digest of what the person saw, or empty; `reason` goes with
    /// a denial; `by` names the person.
    ///
    /// # Errors
    /// [`DecideError`]; nothing was decided.
    pub async fn decide(
        &self,
        id: &str,
        approve: bool,
        digest: &str,
        reason: &str,
        by: &str,
    ) -> Result<agent::Approval, DecideError> {
        if reason.len() > MAX_REASON_BYTES {
            return Err(DecideError::LongReason { bytes: reason.len() });
        }
        let state = if approve { State::Approved } else { State::Denied };
        let [id, digest, reason, by] = [id, digest, reason, by].map(str::to_owned);
        self.parking
            .whole(|parking| async move { parking.decide(&id, state, &digest, &reason, &by).await })
            .await
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

#[async_trait]
impl Confirm for Desk {
    async fn may(
        &self,
        caller: &Caller,
        call_id: &str,
        plugin: &str,
        action: &str,
        args: &BTreeMap<String, String>,
        read_only: bool,
        destructive: Option<bool>,
        listener: &Arc<dyn Listener>,
    ) -> Confirmed {
        let settings = self.settings();
        let asked = Asked { plugin, action, args, read_only, destructive };
        let Some(why) = settings.policy.asks(asked) else { return Confirmed::Yes };
        let Some(record) = Record::new(caller, call_id, asked, &why, settings.expires_after) else {
            return too_large();
        };
        let left = settings.expires_after;
        let mut place =
            match self.parking.whole(|parking| async move { parking.ask(record, left).await }).await {
                Found::Answer(answer) => return answer,
                Found::Wait(place) => place,
            };
        listener.hear(Kind::Approval((*place.shown).clone()));
        loop {
            // Either there is an answer or the time is over; the queue says which. The sender lives as long as the
            // queue.
            let decided = place.state.wait_for(|state| *state != State::Pending);
            let _ = tokio::time::timeout_at(place.deadline, decided).await;
            let id = place.id.clone();
            if let Some(answer) = self.parking.whole(|parking| async move { parking.settle(&id).await }).await
            {
                return answer;
            }
        }
    }

    async fn ended(&self, caller: &Caller) {
        let caller = caller.clone();
        self.parking.whole(|parking| async move { parking.ended(&caller).await }).await;
    }
}
