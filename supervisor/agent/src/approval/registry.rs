//! All parked calls, in memory and on disk: they are added, decided, expired, cancelled and removed here.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use talon_agent_settings::LimitKeys;
use talon_arguments::form::Form;
use talon_event_bus::EventBus;
use talon_guard::Raw;
use talon_proto::agent;
use talon_store::{Error, InvalidError, Sessions, Timestamp};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::announcement::announce;
use super::error::DecideError;
use super::journal::ApprovalJournal;
use super::messages::{denied, format_span, not_stored, not_stored_text, too_large_text};
use super::parked_call::{ParkOutcome, ParkedCall};
use super::record::{ApprovalRecord, ApprovalState};
use super::store::ApprovalStore;
use crate::driver::{Caller, Confirmation, Reply};
use crate::plan::Plan;

/// The most decided calls that are stored for `talon approval list --all`: the newest.
pub(super) const MAX_DECIDED: usize = 200;
/// The longest time for which a decided call is stored.
const DECIDED_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// All parked calls.
pub(super) struct ApprovalRegistry {
    store: ApprovalStore,
    /// By id, which sorts by age. Locked during a write: decisions are made by people, and rarely two at
    /// once.
    parked: Mutex<BTreeMap<String, ParkedCall>>,
    /// Notes each approval in its session.
    journal: OnceLock<ApprovalJournal>,
    bus: OnceLock<EventBus>,
}

impl ApprovalRegistry {
    /// Loads the stored calls.
    pub(super) async fn open(shelf: ApprovalStore) -> Result<Self, Error> {
        let now = Timestamp::now();
        let parked = shelf.load().await?.into_iter().map(|record: ApprovalRecord| {
            let (requested, expires) = (record.asked_at.as_millis(), record.expires_at.as_millis());
            // If the clock was set back in the meantime, no call may wait longer than its original timeout.
            let left = (expires - now.as_millis()).clamp(0, (expires - requested).max(0));
            (record.id.clone(), ParkedCall::new(record, Duration::from_millis(left.unsigned_abs())))
        });
        let (journal, bus) = (OnceLock::new(), OnceLock::new());
        Ok(Self { parked: Mutex::new(parked.collect()), store: shelf, journal, bus })
    }

    /// Notes each approval in its session from now on.
    pub(super) fn keep_in(&self, sessions: Arc<dyn Sessions>) {
        let _first_stays = self.journal.set(ApprovalJournal(sessions));
    }

    /// Announces each change of an approval from now on.
    pub(super) fn announce_on(&self, bus: EventBus) {
        let _first_stays = self.bus.set(bus);
    }

    async fn note(&self, record: &ApprovalRecord) {
        if let Some(bus) = self.bus.get() {
            announce(bus, record);
        }
        if let Some(journal) = self.journal.get() {
            journal.note(record).await;
        }
    }

    /// Locks the calls, after expiring the ones that are overdue.
    pub(super) async fn lock_current(&self) -> MutexGuard<'_, BTreeMap<String, ParkedCall>> {
        let mut parked = self.parked.lock().await;
        self.tidy(&mut parked).await;
        parked
    }

    /// Runs an operation to its end even if its caller is dropped, so that disk and memory stay consistent.
    pub(super) async fn run_to_completion<T, F>(self: &Arc<Self>, what: impl FnOnce(Arc<Self>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        match tokio::spawn(what(Arc::clone(self))).await {
            Ok(done) => done,
            // A panic is passed on to the caller, as if there were no task; nothing aborts the task.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime shuts down, and the caller with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Parks a call, or finds the one that is already parked.
    pub(super) async fn ask(&self, record: ApprovalRecord, left: Duration, limits: LimitKeys) -> ParkOutcome {
        let mut parked = self.lock_current().await;
        let known = parked
            .values_mut()
            .find(|one| one.record.call == record.call && !one.delivered && !one.is_waited_for());
        if let Some(known) = known {
            if let Some(plan) = record.plan() {
                known.record.set_plan(plan);
            }
            // A kill may have come between.
            self.note(&known.record).await;
            return ParkOutcome::Wait(known.wait());
        }
        let of_session = pending(&parked, Some(&record.call.session));
        let most = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        if of_session >= most(limits.approvals_per_session)
            || pending(&parked, None) >= most(limits.approvals)
        {
            return ParkOutcome::Refused(
                "too many calls wait for the user's word already; wait until they are decided".to_owned(),
            );
        }
        let is_theirs = |one: &&ParkedCall| {
            one.record.state == ApprovalState::Pending && one.record.sender == record.sender
        };
        if parked.values().filter(is_theirs).count() >= most(limits.approvals_per_sender) {
            return ParkOutcome::Refused(format!(
                "{} calls of this user wait for a person's word in all sessions together, which is the most; wait until some are \
                 decided",
                limits.approvals_per_sender
            ));
        }
        let Some(value) = ApprovalStore::encode(&record) else {
            return ParkOutcome::Refused(too_large_text());
        };
        if let Err(error) = self.store.put(&record.id, value).await {
            return ParkOutcome::Refused(not_stored_text(&error));
        }
        tracing::info!(target: "agent", approval = record.id,
            session = record.call.session,
            turn = record.call.turn,
            plugin = record.plugin,
            action = record.action,
            why = record.why,
            "a call waits for approval"
        );
        self.note(&record).await;
        let id = record.id.clone();
        let one = parked.entry(id).or_insert(ParkedCall::new(record, left));
        ParkOutcome::Wait(one.wait())
    }

    /// Returns the outcome of a call that has a waiter; `None` while there is none.
    pub(super) async fn take_outcome(&self, id: &str) -> Option<Confirmation> {
        let mut parked = self.lock_current().await;
        match parked.get_mut(id) {
            Some(one) => self.take_answer(one).await,
            None => Some(denied("its approval is not known any more")),
        }
    }

    /// Returns the caller's answer; `None` while there is none. This uses up an approval.
    async fn take_answer(&self, one: &mut ParkedCall) -> Option<Confirmation> {
        let record = &one.record;
        let answer = match record.state {
            ApprovalState::Pending => return None,
            ApprovalState::Approved => match self.transition(one, ApprovalState::Taken, "", "").await {
                Ok(()) => Confirmation::Yes,
                Err(error) => not_stored(&error),
            },
            ApprovalState::Taken => denied(
                "it was approved and begun before the agent was restarted, and it is not known what it did; it is not made again",
            ),
            ApprovalState::Denied if record.reason.is_empty() => {
                Confirmation::No("denied by user".to_owned())
            }
            ApprovalState::Denied => {
                let reason = Raw::from(record.reason.as_str()).line();
                Confirmation::No(format!("denied by user: {}", reason.as_str()))
            }
            ApprovalState::Expired => {
                denied(&format!("expired, for nobody decided within {}", format_span(record.waiting_time())))
            }
            ApprovalState::Cancelled => denied("its turn was cancelled"),
        };
        one.delivered = true;
        Some(answer)
    }

    /// Returns what came of a question that has a waiter; `None` while there is nothing.
    pub(super) async fn take_reply(&self, id: &str) -> Option<Reply> {
        let mut parked = self.lock_current().await;
        let Some(one) = parked.get_mut(id) else {
            return Some(Reply::NotAsked("the question is not known any more".to_owned()));
        };
        if one.record.state == ApprovalState::Approved {
            // The end of its turn cancels it no more.
            self.transition_best_effort(one, ApprovalState::Taken).await;
        }
        let record = &one.record;
        let reply = match record.state {
            ApprovalState::Pending => return None,
            ApprovalState::Approved | ApprovalState::Taken => Reply::Answered(record.answer.clone()),
            ApprovalState::Denied => Reply::Declined(record.reason.clone()),
            ApprovalState::Expired => Reply::Expired(record.waiting_time()),
            ApprovalState::Cancelled => Reply::NotAsked("its turn was cancelled".to_owned()),
        };
        one.delivered = true;
        Some(reply)
    }

    /// The record of a call or question that still waits.
    pub(super) async fn pending_record(&self, id: &str) -> Option<ApprovalRecord> {
        let parked = self.lock_current().await;
        let one = parked.get(id).filter(|one| one.record.state == ApprovalState::Pending);
        one.map(|one| one.record.clone())
    }

    /// Answers a question, for good.
    pub(super) async fn answer(
        &self,
        id: &str,
        answer: &str,
        by: &str,
    ) -> Result<agent::Approval, DecideError> {
        let mut parked = self.lock_current().await;
        let unknown = || DecideError::Unknown { id: id.chars().take(40).collect() };
        let one = parked.get_mut(id).ok_or_else(unknown)?;
        if one.record.question.is_none() {
            return Err(DecideError::NoQuestion);
        }
        if let Some(form) = one.record.form() {
            // It was checked when it was asked.
            let form = Form::parse(&form.schema).map_err(|_| DecideError::NoQuestion)?;
            form.check(answer)?;
        }
        match one.record.state {
            ApprovalState::Pending => {}
            ApprovalState::Expired => return Err(DecideError::Expired),
            ApprovalState::Cancelled => return Err(DecideError::Cancelled),
            ApprovalState::Approved | ApprovalState::Taken | ApprovalState::Denied => {
                let by = one.record.decided_by.clone();
                return Err(DecideError::Decided { state: one.record.state_word(), by });
            }
        }
        one.record.answer = answer.to_owned();
        self.transition(one, ApprovalState::Approved, by, "").await?;
        tracing::info!(target: "agent", approval = id, by, "a question was answered");
        Ok(one.record.to_wire())
    }

    pub(super) async fn decide(
        &self,
        id: &str,
        state: ApprovalState,
        digest: &str,
        reason: &str,
        by: &str,
    ) -> Result<agent::Approval, DecideError> {
        let mut parked = self.lock_current().await;
        let unknown = || DecideError::Unknown { id: id.chars().take(40).collect() };
        let one = parked.get_mut(id).ok_or_else(unknown)?;
        if !digest.is_empty() && digest != one.record.call.digest {
            return Err(DecideError::OtherDigest);
        }
        if one.record.question.is_some() && state == ApprovalState::Approved {
            return Err(DecideError::NeedsAnswer);
        }
        let before = |state| DecideError::Decided { state, by: one.record.decided_by.clone() };
        match one.record.state {
            ApprovalState::Pending => {}
            ApprovalState::Approved | ApprovalState::Taken => return Err(before("approved")),
            ApprovalState::Denied => return Err(before("denied")),
            ApprovalState::Expired => return Err(DecideError::Expired),
            ApprovalState::Cancelled => return Err(DecideError::Cancelled),
        }
        self.transition(one, state, by, if state == ApprovalState::Denied { reason } else { "" }).await?;
        tracing::info!(target: "agent", approval = id, by, ?state, "a call was decided");
        Ok(one.record.to_wire())
    }

    pub(super) async fn turn_ended(&self, caller: &Caller) {
        let mut parked = self.parked.lock().await;
        let of_agent = caller.subagent.is_empty();
        for one in parked.values_mut() {
            let call = &one.record.call;
            let is_of_turn = call.session == caller.session && call.turn == caller.turn;
            // Two sub-agents of the same name may run at once: a call that still has a waiter belongs to the
            // other one.
            let is_its = of_agent || (call.subagent == caller.subagent && !one.is_waited_for());
            if is_of_turn && is_its && one.is_open() {
                self.transition_best_effort(one, ApprovalState::Cancelled).await;
            }
        }
        self.tidy(&mut parked).await;
    }

    /// Cancels the calls of a turn's sub-agents that have no waiter.
    pub(super) async fn forget_subagents(&self, session: &str, turn: u64) {
        let mut parked = self.parked.lock().await;
        for one in parked.values_mut() {
            let call = &one.record.call;
            let is_inside = call.session == session && call.turn == turn && !call.subagent.is_empty();
            if is_inside && !one.is_waited_for() && one.is_open() {
                self.transition_best_effort(one, ApprovalState::Cancelled).await;
            }
        }
    }

    /// Shows a session's plan as it is now with the question whether to carry it out. In memory: after a restart it is
    /// asked with the plan of that time.
    pub(super) async fn set_plan(&self, session: &str, plan: &Plan) {
        let mut parked = self.parked.lock().await;
        let asked = parked.values_mut().map(|one| &mut one.record);
        asked
            .filter(|record| record.state == ApprovalState::Pending && record.call.session == session)
            .for_each(|record| record.set_plan(plan));
    }

    /// Removes all calls of a sender; those that wait are cancelled first.
    pub(super) async fn forget_sender(&self, sender: &str) -> Result<u64, Error> {
        let mut parked = self.parked.lock().await;
        let theirs = |one: &&mut ParkedCall| one.record.sender == sender;
        for one in parked.values_mut().filter(theirs).filter(|one| one.is_open()) {
            self.transition_best_effort(one, ApprovalState::Cancelled).await;
        }
        let ids: Vec<String> =
            parked.iter().filter(|(_, one)| one.record.sender == sender).map(|(id, _)| id.clone()).collect();
        for id in &ids {
            self.store.remove(id).await?;
            parked.remove(id);
        }
        Ok(u64::try_from(ids.len()).unwrap_or(u64::MAX))
    }

    /// Expires overdue calls, and removes old decided ones.
    async fn tidy(&self, parked: &mut BTreeMap<String, ParkedCall>) {
        let now = Instant::now();
        for one in parked.values_mut().filter(|one| one.is_open() && one.deadline <= now) {
            self.transition_best_effort(one, ApprovalState::Expired).await;
        }
        let oldest = Timestamp::now().before(DECIDED_RETENTION);
        let decided: Vec<(String, Timestamp)> = parked
            .values()
            .filter(|one| !one.is_open() && !one.is_waited_for())
            .map(|one| (one.record.id.clone(), one.record.decided_at.unwrap_or(one.record.asked_at)))
            .collect();
        let too_many = decided.len().saturating_sub(MAX_DECIDED);
        let forgotten = decided.iter().enumerate().filter(|(at, (_, when))| *at < too_many || *when < oldest);
        for (_, (id, _)) in forgotten {
            match self.store.remove(id).await {
                Ok(()) => drop(parked.remove(id)),
                Err(error) => {
                    tracing::warn!(target: "agent", approval = id, %error, "a decided call cannot be forgotten")
                }
            }
        }
    }

    /// Moves a record to another state: on disk, then in memory, then for its waiters.
    async fn transition(
        &self,
        one: &mut ParkedCall,
        state: ApprovalState,
        by: &str,
        reason: &str,
    ) -> Result<(), Error> {
        let next = one.record.with_state(state, by, reason);
        // The record was written before, and is larger now only by a reason and a name, which are bounded.
        let value = ApprovalStore::encode(&next).ok_or_else(|| InvalidError {
            what: "the approval",
            why: "is larger than the store takes".to_owned(),
        })?;
        self.store.put(&next.id, value).await?;
        self.note(&next).await;
        one.record = next;
        one.state.send_replace(state);
        Ok(())
    }

    /// The same for a final state that need not reach the disk: after a restart it follows from the deadline
    /// or from the turn's end.
    async fn transition_best_effort(&self, one: &mut ParkedCall, state: ApprovalState) {
        if let Err(error) = self.transition(one, state, "", "").await {
            tracing::warn!(target: "agent", approval = one.record.id, %error, ?state, "the end of a parked call cannot be stored");
            let next = one.record.with_state(state, "", "");
            self.note(&next).await;
            one.record = next;
            one.state.send_replace(state);
        }
    }
}

pub(super) fn pending(parked: &BTreeMap<String, ParkedCall>, session: Option<&str>) -> usize {
    let is_wanted = |one: &&ParkedCall| {
        one.record.state == ApprovalState::Pending
            && session.is_none_or(|session| one.record.call.session == session)
    };
    parked.values().filter(is_wanted).count()
}
