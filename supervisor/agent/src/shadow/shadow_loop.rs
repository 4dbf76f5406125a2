//! The state of all people: on the disk before anybody sees it.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::RwLock;
use talon_agent_settings::ShadowKeys;
use talon_event_bus::{EventBus, Payload, Subject};
use talon_proto::agent::{
    Ghost, Observation, ObservationVerdict, ObserveRequest, ObserveResponse, ShadowEvent,
};
use talon_shadow_policy::{Candidate, HoldReason};
use talon_store::{Error, KeyValues};
use tokio::sync::{Mutex, Notify, watch};

use super::error::ShadowError;
use super::observation::{MAX_OBSERVATIONS, SOURCE, fingerprint, known_kind, problem};
use super::people::PeopleCounts;
use super::record::{SenderRecord, now, unix_ms};
use super::redaction::redact_again;
use super::store::{ShadowStore, StoredShadow};
use super::watchers::Watchers;
use crate::metrics::Metrics;
use crate::notify::{EventObserver, Notifier, ghost_waiting};

/// How much of a wrong id is repeated.
const MAX_SHOWN_ID: usize = 64;

/// The shadow loop.
pub(crate) struct ShadowLoop {
    pub(super) inner: Mutex<ShadowState>,
    pub(super) store: ShadowStore,
    pub(super) notifier: Arc<Notifier>,
    keys: RwLock<Arc<ShadowKeys>>,
    /// The sequence of the latest change of a ghost.
    pub(super) changed: watch::Sender<u64>,
    pub(super) bus: EventBus,
    /// Notified when there is something to ask, or to wait for.
    pub(super) wake: Notify,
    dropped: std::sync::atomic::AtomicU64,
    pub(super) watchers: Watchers,
    /// As they were counted last.
    pub(super) people: parking_lot::Mutex<PeopleCounts>,
    pub(super) metrics: Arc<Metrics>,
}

/// What is known, as it is on the disk.
#[derive(Default)]
pub(super) struct ShadowState {
    pub(super) stored: StoredShadow,
    pub(super) sequence: u64,
    /// The entries of questions that another agent asks, by their senders: they are not asked here too.
    pub(super) asked_elsewhere: BTreeMap<String, String>,
}

impl ShadowState {
    /// The next sequence: greater than all before, also than those of ghosts that were removed, since it is not less than
    /// the time.
    pub(super) fn next_sequence(&self) -> u64 {
        unix_ms().max(self.sequence + 1)
    }
}

impl ShadowLoop {
    /// Opens it with what was there before a restart. Ghosts that wait are told to people again, which counts once.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn open(
        kv: Arc<dyn KeyValues>,
        notifier: Arc<Notifier>,
        keys: &ShadowKeys,
        metrics: Arc<Metrics>,
        bus: EventBus,
    ) -> Result<Arc<Self>, Error> {
        let store = ShadowStore::new(kv);
        let stored = store.load().await?;
        let ghosts = stored.ghosts.values().filter_map(|one| one.ghost.as_ref());
        ghosts
            .clone()
            .filter(|ghost| ghost.state == WAITING)
            .for_each(|ghost| notifier.notify(ghost_waiting(ghost)));
        let sequence = ghosts.map(|ghost| ghost.sequence).max().unwrap_or_default();
        let shadow = Arc::new(Self {
            inner: Mutex::new(ShadowState { stored, sequence, ..ShadowState::default() }),
            store,
            notifier,
            keys: RwLock::new(Arc::new(keys.clone())),
            changed: watch::Sender::new(sequence),
            bus,
            wake: Notify::new(),
            dropped: std::sync::atomic::AtomicU64::new(0),
            watchers: Watchers::default(),
            people: parking_lot::Mutex::default(),
            metrics,
        });
        let observer: Weak<dyn EventObserver> = Arc::downgrade(&(Arc::clone(&shadow) as _));
        shadow.notifier.observe_numbered(observer);
        Ok(shadow)
    }

    /// Applies a new configuration.
    pub(crate) fn configure(&self, keys: &ShadowKeys) {
        *self.keys.write() = Arc::new(keys.clone());
        self.wake.notify_one();
    }

    pub(crate) fn keys(&self) -> Arc<ShadowKeys> {
        Arc::clone(&self.keys.read())
    }

    /// What watchers dropped since this process began.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Runs an operation to its end even if its caller is dropped, so that disk and memory stay consistent.
    pub(super) async fn run_to_completion<T, F>(self: &Arc<Self>, what: impl FnOnce(Arc<Self>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        match tokio::spawn(what(Arc::clone(self))).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime shuts down, and the caller with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Takes what a watcher of a person saw.
    ///
    /// # Errors
    /// [`ShadowError`]; none of it was taken, and it may be sent again.
    pub(crate) async fn observe(
        self: &Arc<Self>,
        sender: &str,
        mut request: ObserveRequest,
    ) -> Result<ObserveResponse, ShadowError> {
        if request.observations.len() > MAX_OBSERVATIONS {
            return Err(ShadowError::Invalid(format!(
                "{} observations are more than {MAX_OBSERVATIONS}: send the others in another request",
                request.observations.len()
            )));
        }
        let keys = self.keys();
        if !keys.enabled && !request.observations.is_empty() {
            return Err(ShadowError::Off);
        }
        let (sender, dropped) = (sender.to_owned(), request.dropped);
        let redacted = redact_again(&mut request);
        self.run_to_completion(|this| async move {
            let taken = this.take(&sender, &request, &keys).await?;
            // Only now: what was not taken comes again, with its count.
            this.dropped.fetch_add(dropped, std::sync::atomic::Ordering::Relaxed);
            this.metrics.count_shadow_redactions(redacted);
            Ok(taken)
        })
        .await
    }

    async fn take(
        &self,
        sender: &str,
        request: &ObserveRequest,
        keys: &ShadowKeys,
    ) -> Result<ObserveResponse, ShadowError> {
        let mut inner = self.current().await?;
        // Of what another agent noted meanwhile all is considered once more.
        let ConsideredRequest { record, verdicts, seen, kinds, postponed } = loop {
            let before = inner.stored.senders.get(sender);
            let considered = consider_all(before, sender, request, keys);
            let is_known = before.is_some() || !considered.verdicts.is_empty();
            let is_as_good = before.is_some_and(|before| before.is_as_good_as(&considered.record));
            if is_as_good {
                inner.stored.senders.insert(sender.to_owned(), considered.record.clone());
            }
            if !is_known || is_as_good || self.store_sender(&mut inner, considered.record.clone()).await? {
                break considered;
            }
        };
        for (kind, verdict) in kinds.iter().zip(&verdicts) {
            self.metrics.count_shadow_observation(kind, &verdict.verdict);
        }
        postponed.iter().for_each(|reason| self.metrics.count_shadow_postponed(reason.word()));
        for observation in seen {
            let seen = ShadowEvent { sender: sender.to_owned(), observation: Some(observation) };
            self.bus.emit(Subject { sender, session: "" }, Payload::ShadowEvent(seen));
        }
        if record.policy.asking.is_some() {
            self.wake.notify_one();
        }
        Ok(ObserveResponse { verdicts, state: Some(self.state_of(Some(&record))) })
    }

    pub(super) fn emit_ghost(&self, ghost: &Ghost) {
        let subject = Subject { sender: &ghost.sender, session: &ghost.session_id };
        self.bus.emit(subject, Payload::ShadowGhost(ghost.clone()));
    }
}

pub(super) const WAITING: &str = "waiting";
pub(super) const APPROVED: &str = "approved";
pub(super) const DISMISSED: &str = "dismissed";
pub(super) const SNOOZED: &str = "snoozed";
pub(super) const EXPIRED: &str = "expired";
/// The outcome of a question that is being asked.
pub(super) const ASKING: &str = "asking";
/// The outcome of a question that no model answered.
pub(super) const FAILED: &str = "failed";

/// What observations of a person led to.
struct ConsideredRequest {
    record: SenderRecord,
    verdicts: Vec<ObservationVerdict>,
    /// Those that are new.
    seen: Vec<Observation>,
    kinds: Vec<&'static str>,
    postponed: Vec<HoldReason>,
}

/// Has the policy look at all observations of a request.
fn consider_all(
    before: Option<&SenderRecord>,
    sender: &str,
    request: &ObserveRequest,
    keys: &ShadowKeys,
) -> ConsideredRequest {
    let mut record = before.cloned().unwrap_or_else(|| SenderRecord::new(sender));
    // A plugin's events say nothing of what the person's file has.
    if !request.observations.iter().any(|observation| observation.kind == SOURCE) {
        record.cooldown_ms = request.cooldown_ms;
        record.max_ghosts_per_hour = request.max_ghosts_per_hour;
    }
    let (mut verdicts, mut seen, mut kinds, mut postponed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for observation in &request.observations {
        let (word, reason) = match problem(observation) {
            Some(reason) => ("invalid", reason),
            None if consider(&mut record, observation, keys, &mut postponed) => ("taken", String::new()),
            None => ("known", String::new()),
        };
        kinds.push(known_kind(&observation.kind));
        let id = observation.id.chars().take(MAX_SHOWN_ID).collect();
        verdicts.push(ObservationVerdict { id, verdict: word.to_owned(), reason });
        if word == "taken" {
            seen.push(observation.clone());
        }
    }
    record.tidy(now());
    ConsideredRequest { record, verdicts, seen, kinds, postponed }
}

/// Has the policy look at an observation. Returns whether it is new; adds why nothing was asked at a boundary.
fn consider(
    record: &mut SenderRecord,
    observation: &Observation,
    keys: &ShadowKeys,
    postponed: &mut Vec<HoldReason>,
) -> bool {
    let now = now();
    let candidate = Candidate {
        id: observation.id.clone(),
        trigger: observation.trigger.clone(),
        repository: observation.repository.clone(),
        fingerprint: fingerprint(observation),
        boundary: !observation.boundary.is_empty(),
        at_ms: now.unix_ms,
    };
    let limits = record.limits(keys);
    let observed = record.policy.observe(&limits, candidate, now);
    postponed.extend(observed.postponed);
    let waits = record.policy.waiting.iter().any(|one| one.id == observation.id);
    if waits || record.policy.asking.as_deref() == Some(&observation.id) {
        record.keep(observation);
    }
    if observed.ask.is_some() {
        record.entry = Some(ulid::Ulid::generate().to_string());
    }
    observed.new
}

#[cfg(test)]
#[path = "shadow_loop_tests.rs"]
mod tests;
