//! All parked calls, in memory as on the disk: what is asked, decided, expired, cancelled and forgotten.

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

/// Calls that wait in all: 100 are more than anybody looks through, and with at most 256 KiB of arguments each they fit into 25 MiB of
/// memory and into the namespace's quota. One more is denied at once, and the model is told why.
pub const MAX_PENDING: usize = 100;
/// Calls of one session that wait: three answers' worth of calls at once, so that one session cannot take all places.
pub const MAX_PENDING_A_SESSION: usize = 30;
/// Calls of one sender that wait: one user with many sessions cannot take all places, and two cannot either. One more is denied
/// at once, and the model is told why. To be changed here.
pub const MAX_PENDING_A_SENDER: usize = 40;
/// Decided calls that are kept, for `talon approval list --all`: the newest. Older ones are forgotten.
pub(super) const MAX_DECIDED: usize = 200;
/// How long they are kept at most.
const DECIDED_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// All parked calls.
pub(super) struct Parking {
    shelf: Shelf,
    /// By id, which is by age. Held while something is written: people decide, and seldom two at once.
    parked: Mutex<BTreeMap<String, Parked>>,
}

impl Parking {
    /// With what is on the disk.
    pub(super) async fn open(shelf: Shelf) -> Result<Self, Error> {
        let now = Timestamp::now();
        let parked = shelf.load().await?.into_iter().map(|record| {
            let (asked, expires) = (record.asked_at.as_millis(), record.expires_at.as_millis());
            // A clock that was set back meanwhile makes nothing wait longer than it was to wait from its beginning.
            let left = (expires - now.as_millis()).clamp(0, (expires - asked).max(0));
            (record.id.clone(), Parked::new(record, Duration::from_millis(left.unsigned_abs())))
        });
        Ok(Self { parked: Mutex::new(parked.collect()), shelf })
    }

    /// All of them as they are now.
    pub(super) async fn now(&self) -> MutexGuard<'_, BTreeMap<String, Parked>> {
        let mut parked = self.parked.lock().await;
        self.tidy(&mut parked).await;
        parked
    }

    /// Does something to its end, also if whoever wanted it goes away meanwhile: what is on the disk and what is in memory stay the
    /// same.
    pub(super) async fn whole<T, F>(self: &Arc<Self>, what: impl FnOnce(Arc<Self>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        match tokio::spawn(what(Arc::clone(self))).await {
            Ok(done) => done,
            // A defect goes on where it would have without the task; nobody aborts it.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends, and with it whoever waits here.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Parks a call, or finds it.
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

    /// What came of a call that somebody waits for; `None` if nothing has yet.
    pub(super) async fn settle(&self, id: &str) -> Option<Confirmed> {
        let mut parked = self.now().await;
        match parked.get_mut(id) {
            Some(one) => self.told(one).await,
            None => Some(denied("its approval is not known any more")),
        }
    }

    /// The answer for whoever asks, `None` while there is none. An approval is taken by it.
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
            // Two sub-agents of one name may be at work at once: what is still waited for is the other one's.
            let is_its = of_agent || (call.subagent == caller.subagent && !one.is_waited_for());
            if is_of_turn && is_its && one.is_open() {
                self.turn_at_last(one, State::Cancelled).await;
            }
        }
        self.tidy(&mut parked).await;
    }

    /// Cancels what sub-agents of a turn asked, and what nobody waits for.
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

    /// Lets time pass: what waited for too long has expired, and old decided ones are forgotten.
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

    /// Brings a record into another state: on the disk, then in memory, then to who waits.
    async fn turn(&self, one: &mut Parked, state: State, by: &str, reason: &str) -> Result<(), Error> {
        let next = one.record.turned(state, by, reason);
        // What could be written once is not larger now, but for a reason and a name, which are bounded.
        let value = Shelf::written(&next).ok_or(Error::Invalid {
            what: "the approval",
            why: "is larger than the store takes".to_owned(),
        })?;
        self.shelf.put(&next.id, value).await?;
        one.record = next;
        one.state.send_replace(state);
        Ok(())
    }

    /// The same for an end that needs no disk: after a restart it is found again by its time, or by its turn being over.
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
