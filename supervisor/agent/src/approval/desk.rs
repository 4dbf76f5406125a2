//! Where calls wait.

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

/// Where calls wait for a person's word. It is durable: what it says has been written before.
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
    /// With what was parked before.
    ///
    /// # Errors
    /// [`OpenError`]
    pub async fn open(kv: Arc<dyn KeyValues>, keys: &ConfirmKeys) -> Result<Arc<Self>, OpenError> {
        let parking = Parking::open(Shelf::new(kv)).await?;
        drop(parking.now().await);
        Ok(Arc::new(Self { parking: Arc::new(parking), settings: RwLock::new(Settings::new(keys)) }))
    }

    /// Goes by another configuration from the next call on; what is parked stays as it is.
    pub fn configure(&self, keys: &ConfirmKeys) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Settings::new(keys);
    }

    /// When an action asks, leaving patterns aside.
    #[must_use]
    pub fn ask(&self, plugin: &str, action: &str, read_only: bool) -> Ask {
        self.settings().policy.ask(plugin, action, read_only)
    }

    /// What is parked, oldest first; with `all`, also what was decided and is not forgotten yet.
    pub async fn list(&self, all: bool) -> Vec<agent::Approval> {
        let parked = self.parking.now().await;
        let wanted = parked.values().filter(|one| all || one.record.state == State::Pending);
        wanted.map(|one| one.record.shown()).collect()
    }

    /// How many wait, of one session or of all.
    pub async fn pending(&self, session: Option<&str>) -> usize {
        let parked = self.parking.now().await;
        pending(&parked, session)
    }

    /// One of them.
    pub async fn get(&self, id: &str) -> Option<agent::Approval> {
        let parked = self.parking.now().await;
        parked.get(id).map(|one| one.record.shown())
    }

    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A turn goes on after the agent was restarted, and its sub-agents do not: nothing waits for their calls any more.
    pub(crate) async fn forget_subagents(&self, session: &str, turn: u64) {
        let session = session.to_owned();
        self.parking.whole(|parking| async move { parking.forget_subagents(&session, turn).await }).await;
    }

    /// Says yes or no, for good. `digest` is what was seen, if it is not empty; `reason` goes with a denial; `by` is who says it.
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
            // Either there is an answer or its time is over; which, the desk says. The sender lives as long as the desk.
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
