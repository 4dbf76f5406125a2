//! The instances of one plugin as its callers see them: which are ready, which will be, and which takes the
//! next call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use parking_lot::Mutex;
use talon_plugin_client::ExecuteError;
use talon_plugin_config::name::PluginName;
use talon_plugin_config::spec::{Dialect, PluginSpec};
use talon_sanitize::{Sanitized, sanitized};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::execute::ExecuteRequest;
use crate::lifecycle::reason::format_duration;
use crate::lifecycle::{Desired, State};
use crate::live_process::{InFlight, LiveProcess};
use crate::traits::process::ProcessHandle;
use crate::usage::InstanceReading;

/// How many calls of one plugin may wait for an instance to become ready. The guard's admission layer keeps
/// the number far below; this bounds callers without a guard. Beyond it a call is refused at once, retryable.
pub const MAX_WAITING_CALLS: usize = 1024;

/// The published status of one instance. Its driver replaces it as a whole after every step.
#[derive(Debug, Clone)]
pub(crate) struct InstanceStatus {
    pub(crate) state: State,
    pub(crate) desired: Desired,
    /// Whether it is ready or becomes ready without an operator: a call may wait for it.
    pub(crate) will_be_ready: bool,
    pub(crate) reason: Option<Sanitized>,
    /// The part of the reason that says what happened, without the consequences.
    pub(crate) cause: Option<Sanitized>,
    /// Deaths within the restart window, as of the last event.
    pub(crate) deaths: u32,
    pub(crate) generation: u64,
    /// How many processes were started for it.
    pub(crate) starts: u64,
    /// How many processes ended other than by a stop, by reason.
    pub(crate) restarts: BTreeMap<&'static str, u64>,
    pub(crate) pid: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) ready_since: Option<SystemTime>,
    pub(crate) start_to_ready: Option<Duration>,
    /// Whether another supervisor started the process.
    pub(crate) taken_over: bool,
    /// Results of the last start; stays after the process has ended.
    pub(crate) last_start: Option<Arc<LastStart>>,
}

/// What a start found out about the program and its jail.
#[derive(Debug)]
pub(crate) struct LastStart {
    pub(crate) report: talon_jail::Report,
    pub(crate) digest: String,
    pub(crate) dialect: Dialect,
}

impl InstanceStatus {
    pub(crate) fn new(desired: Desired) -> Self {
        Self {
            state: State::Discovered,
            desired,
            will_be_ready: desired == Desired::Up,
            reason: None,
            cause: None,
            deaths: 0,
            generation: 0,
            starts: 0,
            restarts: BTreeMap::new(),
            pid: None,
            uid: None,
            ready_since: None,
            start_to_ready: None,
            taken_over: false,
            last_start: None,
        }
    }
}

/// Where one driver publishes its status, and the process that takes its calls.
pub(crate) struct Slot {
    pub(crate) index: u32,
    /// The generation at which the previous pool's instance ended: generations continue from here.
    pub(crate) base_generation: u64,
    pub(crate) status: ArcSwap<InstanceStatus>,
    pub(crate) live: ArcSwapOption<LiveProcess>,
    /// The process, without keeping it alive.
    pub(crate) process: Mutex<Option<Weak<dyn ProcessHandle>>>,
}

impl Slot {
    pub(crate) fn set_process(&self, process: Option<Weak<dyn ProcessHandle>>) {
        *self.process.lock() = process;
    }

    /// Resource usage of its process; blocking.
    pub(crate) fn reading(&self) -> Option<InstanceReading> {
        // The lock is not held while files are read.
        let process = self.process.lock().clone()?.upgrade()?;
        let generation = self.status.load().generation;
        Some(InstanceReading { index: self.index, generation, reading: process.reading()? })
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.live.load().as_ref().map_or(0, |live| live.in_flight())
    }
}

/// All instances of one plugin.
pub(crate) struct InstancePool {
    pub(crate) name: PluginName,
    pub(crate) slots: Vec<Arc<Slot>>,
    /// Incremented whenever a status changed.
    pub(crate) changed: watch::Sender<u64>,
    ready_wait: Duration,
    max_message_bytes: usize,
    waiting: AtomicUsize,
    /// The pool that takes the calls once this one drains: set once, before draining begins.
    successor: OnceLock<Arc<InstancePool>>,
    /// Where the search for the least loaded instance begins, so that equally loaded ones take turns. Held
    /// from choosing an instance until the call is counted: otherwise a concurrent call would choose the same
    /// instance.
    round_robin: Mutex<usize>,
}

impl InstancePool {
    /// The pool of a plugin that is to be started or not. Generations continue from those of the pool
    /// `before`.
    pub(crate) fn new(spec: &PluginSpec, starts: bool, before: Option<&Self>) -> Self {
        let desired = if starts { Desired::Up } else { Desired::Down };
        let slot = |index| {
            let before = before.and_then(|pool| pool.slots.get(usize::try_from(index).ok()?));
            let generation = before.map_or(0, |slot| slot.status.load().generation);
            Arc::new(Slot {
                index,
                base_generation: generation,
                status: ArcSwap::from_pointee(InstanceStatus { generation, ..InstanceStatus::new(desired) }),
                live: ArcSwapOption::empty(),
                process: Mutex::default(),
            })
        };
        Self {
            name: spec.name.clone(),
            slots: (0..spec.instances.max(1)).map(slot).collect(),
            changed: watch::Sender::new(0),
            ready_wait: spec.lifecycle.ready_wait,
            max_message_bytes: spec.max_message_bytes,
            waiting: AtomicUsize::new(0),
            successor: OnceLock::new(),
            round_robin: Mutex::new(0),
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn statuses(&self) -> Vec<Arc<InstanceStatus>> {
        self.slots.iter().map(|slot| slot.status.load_full()).collect()
    }

    /// Waits until the predicate holds for all statuses.
    pub(crate) async fn wait_until(&self, mut holds: impl FnMut(&[Arc<InstanceStatus>]) -> bool) {
        let mut changes = self.changed.subscribe();
        loop {
            changes.borrow_and_update();
            if holds(&self.statuses()) {
                return;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// From now on calls use another pool, including calls that wait in this one.
    pub(crate) fn supersede_with(&self, successor: Arc<Self>) {
        // A pool is replaced once; the next replacement applies to its successor.
        let _ = self.successor.set(successor);
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// The pool that takes calls now.
    fn newest(self: &Arc<Self>) -> &Arc<Self> {
        let mut pool = self;
        while let Some(successor) = pool.successor.get() {
            pool = successor;
        }
        pool
    }

    /// Admits a call to a ready instance of this pool or a successor; also returns the size limit of its
    /// answer in bytes.
    async fn enter(self: &Arc<Self>, deadline: Option<Instant>) -> Result<(InFlight, usize), ExecuteError> {
        let mut pool = self.newest();
        loop {
            let entered = pool.acquire(deadline).await;
            match pool.successor.get() {
                // This pool was replaced while the call looked for an instance or waited for one.
                Some(_) if entered.is_err() => pool = pool.newest(),
                _ => return entered.map(|flight| (flight, pool.max_message_bytes)),
            }
        }
    }

    /// Admits a call to a ready instance, waiting for one that becomes ready without an operator.
    async fn acquire(&self, deadline: Option<Instant>) -> Result<InFlight, ExecuteError> {
        if let Some(flight) = self.pick(deadline) {
            return Ok(flight);
        }
        let _waiting = WaitPermit::enter(&self.waiting).ok_or_else(|| ExecuteError::Unavailable {
            reason: sanitized!("{} calls wait for it already", MAX_WAITING_CALLS),
            retryable: true,
        })?;
        let began = Instant::now();
        let patience = began + self.ready_wait;
        let give_up = deadline.map_or(patience, |deadline| deadline.min(patience));
        let mut changes = self.changed.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(flight) = self.pick(deadline) {
                return Ok(flight);
            }
            if self.successor.get().is_some() {
                return Err(ExecuteError::Stopped);
            }
            if !self.slots.iter().any(|slot| slot.status.load().will_be_ready) {
                return Err(ExecuteError::Unavailable { reason: self.not_ready_reason(), retryable: false });
            }
            if !matches!(timeout_at(give_up, changes.changed()).await, Ok(Ok(()))) {
                if give_up < patience {
                    return Err(ExecuteError::TimedOut { waited: began.elapsed(), sent: false });
                }
                return Err(ExecuteError::Unavailable {
                    reason: sanitized!(
                        "not ready after {}: {}",
                        format_duration(self.ready_wait),
                        self.not_ready_reason()
                    ),
                    retryable: true,
                });
            }
        }
    }

    /// Admits the call to the least loaded ready instance.
    fn pick(&self, deadline: Option<Instant>) -> Option<InFlight> {
        let ready =
            |slot: &Slot| (slot.status.load().state == State::Ready).then(|| slot.live.load_full()).flatten();
        if let [slot] = self.slots.as_slice() {
            return ready(slot)?.enter(deadline);
        }
        let mut turn = self.round_robin.lock();
        *turn = turn.wrapping_add(1);
        let first = *turn;
        let count = self.slots.len();
        let ready = (0..count).filter_map(|step| ready(&self.slots[first.wrapping_add(step) % count]));
        // A driver publishes that it is no longer ready before it closes the process to calls, so after a
        // refusal here there is no point in searching again at once.
        ready.min_by_key(|live| live.in_flight())?.enter(deadline)
    }

    /// The most relevant state for a caller, and its reason.
    fn not_ready_reason(&self) -> Sanitized {
        let views = self.statuses();
        let view = summary(&views);
        match (&view.reason, view.state) {
            (Some(reason), state) => sanitized!("{}: {}", state, reason),
            (None, State::Discovered) => {
                sanitized!("not started; `talon plugin start {}` starts it", self.name)
            }
            (None, state) => sanitized!("{}", state),
        }
    }
}

/// How many processes ended, by reason, including those of earlier pools.
pub(crate) fn total_restarts(
    before: &BTreeMap<&'static str, u64>,
    views: &[Arc<InstanceStatus>],
) -> BTreeMap<&'static str, u64> {
    let mut sums = before.clone();
    for (reason, count) in views.iter().flat_map(|view| &view.restarts) {
        *sums.entry(*reason).or_default() += count;
    }
    sums
}

/// The status that represents the plugin: that of the instance most useful to a caller. A plugin is ready if
/// one instance is; it is failed only if no instance is better.
pub(crate) fn summary(views: &[Arc<InstanceStatus>]) -> Arc<InstanceStatus> {
    let usefulness = |view: &&Arc<InstanceStatus>| match view.state {
        State::Ready => 0,
        State::Unhealthy => 1,
        State::Handshaking => 2,
        State::Starting => 3,
        State::Backoff => 4,
        State::Draining => 5,
        State::Failed => 6,
        State::Refused => 7,
        State::Discovered => 8,
        State::Stopped => 9,
    };
    views
        .iter()
        .min_by_key(usefulness)
        .cloned()
        .unwrap_or_else(|| Arc::new(InstanceStatus::new(Desired::Down)))
}

/// Counts one call that waits for an instance.
struct WaitPermit<'a>(&'a AtomicUsize);

impl<'a> WaitPermit<'a> {
    fn enter(count: &'a AtomicUsize) -> Option<Self> {
        let waiting = Self(count);
        // Dropping it decrements the counter, also when the limit was reached.
        (waiting.0.fetch_add(1, Ordering::Relaxed) < MAX_WAITING_CALLS).then_some(waiting)
    }
}

impl Drop for WaitPermit<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs calls on one plugin. Cheap to clone. It stays valid across restarts of the plugin's processes.
#[derive(Clone)]
pub struct Executor {
    pub(crate) pool: Arc<InstancePool>,
}

impl Executor {
    /// Runs one call on the least loaded ready instance and returns the undecoded `ToolResultResponse`.
    ///
    /// If the plugin was replaced meanwhile, the call goes to its successor. While the plugin starts,
    /// restarts or recovers, the call waits up to the plugin's `ready_wait` and its own deadline. Once sent,
    /// a call is never repeated: after a crash it is unknown whether the action took effect. Dropping the
    /// future cancels the call on the wire. An answer after the deadline is discarded; see
    /// `kill_overdue_after` for why its stream may stay open.
    ///
    /// # Errors
    /// [`ExecuteError`]; at once when the plugin is stopped, failed or dies during the call.
    pub fn execute(
        &self,
        request: ExecuteRequest,
    ) -> impl Future<Output = Result<Bytes, ExecuteError>> + Send + '_ {
        let began = Instant::now();
        // An `async fn` would store the request twice.
        async move {
            let answer = match self.pool.enter(request.deadline).await {
                Ok((flight, max_message_bytes)) => flight.execute(&request, max_message_bytes).await,
                Err(error) => Err(error),
            };
            answer.map_err(|error| match error {
                ExecuteError::TimedOut { sent, .. } => {
                    ExecuteError::TimedOut { waited: began.elapsed(), sent }
                }
                other => other,
            })
        }
    }

    /// Calls that wait for an instance to become ready.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pool.newest().waiting()
    }

    /// Calls in flight, over all instances.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pool.newest().slots.iter().map(|slot| slot.in_flight()).sum()
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Executor").field(&self.pool.name).finish()
    }
}
