//! All parked calls, in memory and on disk: they are added, decided, expired, cancelled and removed here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use talon_guard::Raw;
use talon_proto::agent;
use talon_store::{Error, Timestamp};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::error::DecideError;
use super::parked::{Found, Parked};
use super::record::{Record, State};
use super::shelf::Shelf;
use super::words::{denied, not_stored, span, too_large};
use crate::driver::{Caller, Confirmed};

/// The most calls that wait in total. A person does not review more than 100, and with at most 256 KiB of arguments
/// each they fit into 25 MiB of memory and into the namespace's quota. A further call is denied at once, and the model
/// receives the reason.
pub const MAX_PENDING: usize = 100;
/// The most calls of one session that wait: three answers' worth of parallel calls, so that one session cannot use
/// every slot.
pub const MAX_PENDING_A_SESSION: usize = 30;
/// The most calls of one sender that wait: neither one user with many sessions nor two users can use every slot. A
/// further call is denied at once, and the model receives the reason. Not configurable.
pub const MAX_PENDING_A_SENDER: usize = 40;
/// The most decided calls that are stored for `talon approval list --all`: the newest.
pub(super) const MAX_DECIDED: usize = 200;
/// The longest time for which a decided call is stored.
const DECIDED_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// All parked calls.
pub(super) struct Parking {
    shelf: Shelf,
    /// By id, which sorts by age. Locked during a write: decisions are made by people, and rarely two at once.
    parked: Mutex<BTreeMap<String, Parked>>,
}

impl Parking {
    /// Loads the stored calls.
    pub(super) async fn open(shelf: Shelf) -> Result<Self, Error> {
        let now = Timestamp::now();
        let parked = shelf.load().await?.into_iter().map(|record| {
            let (asked, expires) = (record.asked_at.as_millis(), record.expires_at.as_millis());
            // If the clock was set back in the meantime, no call may wait longer than its original timeout.
            let left = (expires - now.as_millis()).clamp(0, (expires - asked).max(0));
            (record.id.clone(), Parked::new(record, Duration::from_millis(left.unsigned_abs())))
        });
        Ok(Self { parked: Mutex::new(parked.collect()), shelf })
    }

    /// Locks the calls, after expiring the ones that are overdue.
    pub(super) async fn now(&self) -> MutexGuard<'_, BTreeMap<String, Parked>> {
        let mut parked = self.parked.lock().await;
        self.tidy(&mut parked).await;
        parked
    }

    /// Runs an operation to its end even if its caller is dropped, so that disk and memory stay consistent.
    pub(super) async fn whole<T, F>(self: &Arc<Self>, what: impl FnOnce(Arc<Self>) -> F) -> T
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
    pub(super) async fn ask(&self, record: Record, left: Duration) -> Found {
        let mut parked = self.now().await;
        let known = parked
            .values_mut()
            .find(|one| one.record.call == record.call && !one.told && !one.is_waited_for());
        if let Some(known) = known {
            return match self.told(known).await {
                Some(answer) => Found::Answer(answer),
                None => Found::Wait(known.wait()),
            };
        }
        let of_session = pending(&parked, Some(&record.call.session));
        if of_session >= MAX_PENDING_A_SESSION || pending(&parked, None) >= MAX_PENDING {
            return Found::Answer(denied(
                "too many calls wait for the user's word already; wait until they are decided",
            ));
        }
        let is_theirs =
            |one: &&Parked| one.record.state == State::Pending && one.record.sender == record.sender;
        if parked.values().filter(is_theirs).count() >= MAX_PENDING_A_SENDER {
            return Found::Answer(denied(&format!(
                "{MAX_PENDING_A_SENDER} calls of this user wait for a person's word in all sessions together, which is the most; wait \
                 until some are decided"
            )));
        }
        let Some(value) = Shelf::written(&record) else { return Found::Answer(too_large()) };
        if let Err(error) = self.shelf.put(&record.id, value).await {
            return Found::Answer(not_stored(&error));
        }
        tracing::info!(target: "agent", approval = record.id,
            session = record.call.session,
            turn = record.call.turn,
            plugin = record.plugin,
            action = record.action,
            why = record.why,
            "a call waits for approval"
        );
        let id = record.id.clone();
        let one = parked.entry(id).or_insert(Parked::new(record, left));
        Found::Wait(one.wait())
    }

    /// Returns the outcome of a call that has a waiter; `None` while there is none.
    pub(super) async fn settle(&self, id: &str) -> Option<Confirmed> {
        let mut parked = self.now().await;
        match parked.get_mut(id) {
            Some(one) => self.told(one).await,
            None => Some(denied("its approval is not known any more")),
        }
    }

    /// Returns the caller's answer; `None` while there is none. This uses up an approval.
    async fn told(&self, one: &mut Parked) -> Option<Confirmed> {
        let record = &one.record;
        let answer = match record.state {
            State::Pending => return None,
            State::Approved => match self.turn(one, State::Taken, "", "").await {
                Ok(()) => Confirmed::Yes,
                Err(error) => not_stored(&error),
            },
            State::Taken => denied(
                "it was approved and begun before the agent was restarted, and it is not known what it did; it is not made again",
            ),
            State::Denied if record.reason.is_empty() => Confirmed::No("denied by user".to_owned()),
            State::Denied => {
                let reason = Raw::from(record.reason.as_str()).line();
                Confirmed::No(format!("denied by user: {}", reason.as_str()))
            }
            State::Expired => {
                let waited = record.expires_at.as_millis() - record.asked_at.as_millis();
                let waited = Duration::from_millis(waited.unsigned_abs());
                denied(&format!("expired, for nobody decided within {}", span(waited)))
            }
            State::Cancelled => denied("its turn was cancelled"),
        };
        one.told = true;
        Some(answer)
    }

    pub(super) async fn decide(
        &self,
        id: &str,
        state: State,
        digest: &str,
        reason: &str,
        by: &str,
    ) -> Result<agent::Approval, DecideError> {
        let mut parked = self.now().await;
        let unknown = || DecideError::Unknown { id: id.chars().take(40).collect() };
        let one = parked.get_mut(id).ok_or_else(unknown)?;
        if !digest.is_empty() && digest != one.record.call.digest {
            return Err(DecideError::OtherDigest);
        }
        let before = |state| DecideError::Decided { state, by: one.record.decided_by.clone() };
        match one.record.state {
            State::Pending => {}
            State::Approved | State::Taken => return Err(before("approved")),
            State::Denied => return Err(before("denied")),
            State::Expired => return Err(DecideError::Expired),
            State::Cancelled => return Err(DecideError::Cancelled),
        }
        self.turn(one, state, by, if state == State::Denied { reason } else { "" }).await?;
        tracing::info!(target: "agent", approval = id, by, ?state, "a call was decided");
        Ok(one.record.shown())
    }

    pub(super) async fn ended(&self, caller: &Caller) {
        let mut parked = self.parked.lock().await;
        let of_agent = caller.subagent.is_empty();
        for one in parked.values_mut() {
            let call = &one.record.call;
            let is_of_turn = call.session == caller.session && call.turn == caller.turn;
            // Two sub-agents of the same name may run at once: a call that still has a waiter belongs to the other one.
            let is_its = of_agent || (call.subagent == caller.subagent && !one.is_waited_for());
            if is_of_turn && is_its && one.is_open() {
                self.turn_at_last(one, State::Cancelled).await;
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
                self.turn_at_last(one, State::Cancelled).await;
            }
        }
    }

    /// Expires overdue calls, and removes old decided ones.
    async fn tidy(&self, parked: &mut BTreeMap<String, Parked>) {
        let now = Instant::now();
        for one in parked.values_mut().filter(|one| one.is_open() && one.deadline <= now) {
            self.turn_at_last(one, State::Expired).await;
        }
        let oldest = Timestamp::now().before(DECIDED_FOR);
        let decided: Vec<(String, Timestamp)> = parked
            .values()
            .filter(|one| !one.is_open() && !one.is_waited_for())
            .map(|one| (one.record.id.clone(), one.record.decided_at.unwrap_or(one.record.asked_at)))
            .collect();
        let too_many = decided.len().saturating_sub(MAX_DECIDED);
        let forgotten = decided.iter().enumerate().filter(|(at, (_, when))| *at < too_many || *when < oldest);
        for (_, (id, _)) in forgotten {
            match self.shelf.remove(id).await {
                Ok(()) => drop(parked.remove(id)),
                Err(error) => {
                    tracing::warn!(target: "agent", approval = id, %error, "a decided call cannot be forgotten")
                }
            }
        }
    }

    /// Moves a record to another state: on disk, then in memory, then for its waiters.
    async fn turn(&self, one: &mut Parked, state: State, by: &str, reason: &str) -> Result<(), Error> {
        let next = one.record.turned(state, by, reason);
        // The record was written before, and is larger now only by a reason and a name, which are bounded.
        let value = Shelf::written(&next).ok_or(Error::Invalid {
            what: "the approval",
            why: "is larger than the store takes".to_owned(),
        })?;
        self.shelf.put(&next.id, value).await?;
        one.record = next;
        one.state.send_replace(state);
        Ok(())
    }

    /// The same for a final state that need not reach the disk: after a restart it follows from the deadline or from
    /// the turn's end.
    async fn turn_at_last(&self, one: &mut Parked, state: State) {
        if let Err(error) = self.turn(one, state, "", "").await {
            tracing::warn!(target: "agent", approval = one.record.id, %error, ?state, "the end of a parked call cannot be stored");
            one.record = one.record.turned(state, "", "");
            one.state.send_replace(state);
        }
    }
}

pub(super) fn pending(parked: &BTreeMap<String, Parked>, session: Option<&str>) -> usize {
    let is_wanted = |one: &&Parked| {
        one.record.state == State::Pending && session.is_none_or(|session| one.record.call.session == session)
    };
    parked.values().filter(is_wanted).count()
}
