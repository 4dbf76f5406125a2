//! The queue of calls that wait for a person's approval.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::RwLock;
use talon_agent_settings::{ConfirmMode, LimitKeys};
use talon_event_bus::EventBus;
use talon_proto::agent;
use talon_proto::agent::chunk::Kind;
use talon_store::{KeyValues, Sessions};

use super::error::{DecideError, MAX_ANSWER_BYTES, MAX_REASON_BYTES, OpenError};
use super::messages::{allowed_by_rule, denied, too_large};
use super::parked_call::{ParkOutcome, WaiterGuard};
use super::policy::{ConfirmSettings, Policy, PolicyInput};
use super::record::{ApprovalRecord, ApprovalState};
use super::registry::{ApprovalRegistry, pending};
use super::rules::{RuleError, RuleRegistry, RuleScope};
use super::store::ApprovalStore;
use crate::driver::{CallApprover, CallToConfirm, Caller, Confirmation, Listener, Reply};
use crate::plan::Plan;
use crate::question::Question;

/// The longest wait for the answer to a plugin's question: less than the 600 s for which the bridge of an MCP server
/// keeps it, so that an answer in time still reaches the server. Then it is cancelled at the plugin, with a notice.
const MAX_FORM_WAIT: Duration = Duration::from_secs(590);

/// The queue of calls that wait for a person's approval. Durable: a state is on disk before anyone sees it.
pub struct ApprovalQueue {
    parking: Arc<ApprovalRegistry>,
    rules: Arc<RuleRegistry>,
    settings: RwLock<Arc<Settings>>,
    observer: OnceLock<ApprovalObserver>,
}

/// Learns of each call and question that waits; of one more than once, if its turn is resumed.
pub(crate) type ApprovalObserver = Box<dyn Fn(&agent::Approval) + Send + Sync>;

struct Settings {
    policy: Policy,
    expires_after: Duration,
    limits: LimitKeys,
}

impl Settings {
    fn new(confirm: &ConfirmSettings) -> Arc<Self> {
        let expires_after = confirm.keys.expires_after.get();
        Arc::new(Self { policy: Policy::new(confirm), expires_after, limits: confirm.limits })
    }
}

impl ApprovalQueue {
    /// Opens the queue with the calls that were parked before a restart.
    ///
    /// # Errors
    /// [`OpenError`]
    pub async fn open(
        kv: Arc<dyn KeyValues>,
        confirm: impl Into<ConfirmSettings>,
    ) -> Result<Arc<Self>, OpenError> {
        let settings = Settings::new(&confirm.into());
        let rules = RuleRegistry::open(ApprovalStore::of_rules(Arc::clone(&kv))).await?;
        let parking = ApprovalRegistry::open(ApprovalStore::of_approvals(kv)).await?;
        drop(parking.lock_current().await);
        Ok(Arc::new(Self {
            parking: Arc::new(parking),
            rules: Arc::new(rules),
            settings: RwLock::new(settings),
            observer: OnceLock::new(),
        }))
    }

    /// Has an observer learn of what waits from now on. The first one stays.
    pub(crate) fn observe(&self, observer: ApprovalObserver) {
        let _first_stays = self.observer.set(observer);
    }

    /// Notes what is asked and decided in the journal of its session, for those who follow it.
    pub(crate) fn keep_in(&self, sessions: Arc<dyn Sessions>) {
        self.parking.keep_in(sessions);
    }

    /// Announces each change of an approval on the event bus from now on.
    pub(crate) fn announce_on(&self, bus: EventBus) {
        self.parking.announce_on(bus);
    }

    /// Applies a new configuration to later calls. Calls that are already parked keep their terms.
    pub fn configure(&self, confirm: impl Into<ConfirmSettings>) {
        *self.settings.write() = Settings::new(&confirm.into());
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

    /// Shows a session's plan as it is now with the question whether to carry it out.
    pub(crate) async fn set_plan(&self, session: &str, plan: &Plan) {
        self.parking.set_plan(session, plan).await;
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

    /// Approves a call as [`ApprovalQueue::decide`] does, and makes a rule that lets calls like it through.
    /// `patterns` are for arguments that need not be the same ([`super::rules`]).
    ///
    /// # Errors
    /// [`DecideError`]; nothing was decided, and no rule was made.
    pub async fn approve_with_rule(
        &self,
        id: &str,
        digest: &str,
        by: &str,
        scope: RuleScope,
        patterns: BTreeMap<String, String>,
    ) -> Result<agent::Approval, DecideError> {
        let rules = Arc::clone(&self.rules);
        let [id, digest, by] = [id, digest, by].map(str::to_owned);
        self.parking
            .run_to_completion(|parking| async move {
                let rule = match parking.pending_record(&id).await {
                    Some(record) if record.question.is_none() => {
                        Some(rules.add(&record, scope, &patterns, &by).await?)
                    }
                    // The decision below says why it is none.
                    Some(_) | None => None,
                };
                let decided = parking.decide(&id, ApprovalState::Approved, &digest, "", &by).await;
                let rule_id = rule.unwrap_or_default();
                match decided {
                    Ok(approval) => Ok(agent::Approval { rule_id, ..approval }),
                    Err(error) => {
                        if !rule_id.is_empty() {
                            rules.revoke(&rule_id, None).await?;
                        }
                        Err(error)
                    }
                }
            })
            .await
    }

    /// Answers a question, for good: a plugin's with one JSON object that fits its form. `by` names the person.
    ///
    /// # Errors
    /// [`DecideError`]; nothing was answered.
    pub async fn answer(&self, id: &str, answer: &str, by: &str) -> Result<agent::Approval, DecideError> {
        let answer = answer.trim();
        if !(1..=MAX_ANSWER_BYTES).contains(&answer.len()) {
            return Err(DecideError::AnswerLength { bytes: answer.len() });
        }
        let [id, answer, by] = [id, answer, by].map(str::to_owned);
        self.parking.run_to_completion(|parking| async move { parking.answer(&id, &answer, &by).await }).await
    }

    /// The rules of a sender, or of everybody, oldest first.
    pub async fn rules(&self, sender: Option<&str>) -> Vec<agent::ApprovalRule> {
        self.rules.list(sender).await
    }

    /// Revokes a rule, of this sender if one is given. Returns it as it was.
    ///
    /// # Errors
    /// [`RuleError`]; the rule stays.
    pub async fn revoke_rule(
        &self,
        id: &str,
        sender: Option<&str>,
    ) -> Result<agent::ApprovalRule, RuleError> {
        let (rules, id, sender) = (Arc::clone(&self.rules), id.to_owned(), sender.map(str::to_owned));
        self.parking.run_to_completion(|_| async move { rules.revoke(&id, sender.as_deref()).await }).await
    }

    /// Removes everything of a sender: its calls, also decided ones, and its rules. Returns how many of each.
    /// What still waits is cancelled first.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn forget_sender(&self, sender: &str) -> Result<(u64, u64), talon_store::Error> {
        let (rules, sender) = (Arc::clone(&self.rules), sender.to_owned());
        self.parking
            .run_to_completion(|parking| async move {
                let approvals = parking.forget_sender(&sender).await?;
                Ok((approvals, rules.forget_sender(&sender).await?))
            })
            .await
    }

    /// Removes the rules of a session that was deleted.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn forget_session(&self, session: &str) -> Result<(), talon_store::Error> {
        self.rules.forget_session(session).await.map(drop)
    }

    /// Parks a call or a question, and shows it where it is new.
    ///
    /// # Errors
    /// Why it is not parked, for the model.
    async fn park(
        &self,
        record: ApprovalRecord,
        left: Duration,
        listener: &Arc<dyn Listener>,
    ) -> Result<WaiterGuard, String> {
        let limits = self.settings().limits;
        let parked = self
            .parking
            .run_to_completion(move |parking| async move { parking.ask(record, left, limits).await });
        let place = match parked.await {
            ParkOutcome::Refused(words) => return Err(words),
            ParkOutcome::Wait(place) => place,
        };
        if place.shown.state == ApprovalState::Pending.word() {
            listener.on_chunk(Kind::Approval((*place.shown).clone()));
            if let Some(observer) = self.observer.get() {
                observer(&place.shown);
            }
        }
        Ok(place)
    }
}

impl std::fmt::Debug for ApprovalQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApprovalQueue").finish_non_exhaustive()
    }
}

#[async_trait]
impl CallApprover for ApprovalQueue {
    async fn confirm(&self, call: CallToConfirm<'_>, listener: &Arc<dyn Listener>) -> Confirmation {
        let settings = self.settings();
        let Some(why) = settings.policy.confirm_reason(PolicyInput::of(&call)) else {
            return Confirmation::Yes;
        };
        if let Some(rule) = self.rules.use_covering(&call, &why).await {
            listener.on_chunk(Kind::Notice(allowed_by_rule(call.plugin, call.action, &rule)));
            return Confirmation::Yes;
        }
        let Some(record) = ApprovalRecord::new(&call, &why, settings.expires_after) else {
            return too_large();
        };
        let mut place = match self.park(record, settings.expires_after, listener).await {
            Ok(place) => place,
            Err(words) => return denied(&words),
        };
        loop {
            if place.wait().await == ApprovalState::Approved {
                // Used up by the call, and no earlier: until then it holds over a restart.
                let _ = tokio::time::timeout_at(place.deadline, call.position.wait_for_earlier()).await;
            }
            let id = place.id.clone();
            if let Some(answer) =
                self.parking.run_to_completion(|parking| async move { parking.take_outcome(&id).await }).await
            {
                return answer;
            }
        }
    }

    async fn ask_person(
        &self,
        caller: &Caller,
        call_id: &str,
        question: &Question,
        listener: &Arc<dyn Listener>,
    ) -> Reply {
        let mut left = self.settings().expires_after;
        if question.form.is_some() {
            left = left.min(MAX_FORM_WAIT);
        }
        let record = ApprovalRecord::of_question(caller, call_id, question, left);
        let mut place = match self.park(record, left, listener).await {
            Ok(place) => place,
            Err(words) => return Reply::NotAsked(words),
        };
        loop {
            place.wait().await;
            let id = place.id.clone();
            if let Some(reply) =
                self.parking.run_to_completion(|parking| async move { parking.take_reply(&id).await }).await
            {
                return reply;
            }
        }
    }

    async fn turn_ended(&self, caller: &Caller) {
        let caller = caller.clone();
        self.parking.run_to_completion(|parking| async move { parking.turn_ended(&caller).await }).await;
    }
}
