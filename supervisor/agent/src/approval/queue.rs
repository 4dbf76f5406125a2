//! The queue of calls that wait for a person's approval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::RwLock;
use talon_agent_settings::{ConfirmKeys, ConfirmMode};
use talon_arguments::Arguments;
use talon_proto::agent;
use talon_proto::agent::chunk::Kind;
use talon_store::KeyValues;

use super::error::{DecideError, MAX_REASON_BYTES, OpenError};
use super::messages::too_large;
use super::parked_call::ParkOutcome;
use super::policy::{Policy, PolicyInput};
use super::record::{ApprovalRecord, ApprovalState};
use super::registry::{ApprovalRegistry, pending};
use super::store::ApprovalStore;
use crate::driver::{CallApprover, Caller, Confirmation, Listener};

/// The queue of calls that wait for a person's approval. Durable: a state is on disk before anyone sees it.
pub struct ApprovalQueue {
    parking: Arc<ApprovalRegistry>,
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

impl ApprovalQueue {
    /// Opens the queue with the calls that were parked before a restart.
    ///
    /// # Errors
    /// [`OpenError`]
    pub async fn open(kv: Arc<dyn KeyValues>, keys: &ConfirmKeys) -> Result<Arc<Self>, OpenError> {
        let parking = ApprovalRegistry::open(ApprovalStore::new(kv)).await?;
        drop(parking.lock_current().await);
        Ok(Arc::new(Self { parking: Arc::new(parking), settings: RwLock::new(Settings::new(keys)) }))
    }

    /// Applies a new configuration to later calls. Calls that are already parked keep their terms.
    pub fn configure(&self, keys: &ConfirmKeys) {
        *self.settings.write() = Settings::new(keys);
    }

    /// Returns when an action needs approval, without looking at patterns.
    #[must_use]
    pub fn confirm_mode(&self, plugin: &str, action: &str, read_only: bool) -> ConfirmMode {
        self.settings().policy.confirm_mode(plugin, action, read_only)
    }

    /// Lists parked calls, oldest first. With `all`, also the decided ones that are still stored.
    pub async fn list(&self, all: bool) -> Vec<agent::Approval> {
        let parked = self.parking.lock_current().await;
        let wanted = parked.values().filter(|one| all || one.record.state == ApprovalState::Pending);
        wanted.map(|one| one.record.to_wire()).collect()
    }

    /// Counts the calls that wait, of one session or of all.
    pub async fn pending(&self, session: Option<&str>) -> usize {
        let parked = self.parking.lock_current().await;
        pending(&parked, session)
    }

    /// Returns one call.
    pub async fn get(&self, id: &str) -> Option<agent::Approval> {
        let parked = self.parking.lock_current().await;
        parked.get(id).map(|one| one.record.to_wire())
    }

    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read())
    }

    /// Cancels the calls that a turn's sub-agents parked: after a restart the turn is resumed, but its
    /// sub-agents are not.
    pub(crate) async fn forget_subagents(&self, session: &str, turn: u64) {
        let session = session.to_owned();
        self.parking
            .run_to_completion(|parking| async move { parking.forget_subagents(&session, turn).await })
            .await;
    }

    /// Approves or denies a call, for good. `digest` is the digest of what the person saw, or empty; `reason`
    /// goes with a denial; `by` names the person.
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
        let state = if approve { ApprovalState::Approved } else { ApprovalState::Denied };
        let [id, digest, reason, by] = [id, digest, reason, by].map(str::to_owned);
        self.parking
            .run_to_completion(
                |parking| async move { parking.decide(&id, state, &digest, &reason, &by).await },
            )
            .await
    }
}

impl std::fmt::Debug for ApprovalQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

#[async_trait]
impl CallApprover for ApprovalQueue {
    async fn confirm(
        &self,
        caller: &Caller,
        call_id: &str,
        plugin: &str,
        action: &str,
        args: &BTreeMap<String, String>,
        json: &Arguments,
        read_only: bool,
        destructive: Option<bool>,
        listener: &Arc<dyn Listener>,
    ) -> Confirmation {
        let settings = self.settings();
        let input = PolicyInput { plugin, action, args, read_only, destructive };
        let Some(why) = settings.policy.confirm_reason(input) else { return Confirmation::Yes };
        let Some(record) = ApprovalRecord::new(caller, call_id, input, json, &why, settings.expires_after)
        else {
            return too_large();
        };
        let left = settings.expires_after;
        let mut place = match self
            .parking
            .run_to_completion(|parking| async move { parking.ask(record, left).await })
            .await
        {
            ParkOutcome::Answer(answer) => return answer,
            ParkOutcome::Wait(place) => place,
        };
        listener.on_chunk(Kind::Approval((*place.shown).clone()));
        loop {
            // Either there is an answer or the time is over; the queue says which. The sender lives as long
            // as the queue.
            let decided = place.state.wait_for(|state| *state != ApprovalState::Pending);
            let _ = tokio::time::timeout_at(place.deadline, decided).await;
            let id = place.id.clone();
            if let Some(answer) =
                self.parking.run_to_completion(|parking| async move { parking.take_outcome(&id).await }).await
            {
                return answer;
            }
        }
    }

    async fn turn_ended(&self, caller: &Caller) {
        let caller = caller.clone();
        self.parking.run_to_completion(|parking| async move { parking.turn_ended(&caller).await }).await;
    }
}
