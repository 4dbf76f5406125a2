//! The instances of one plugin as its callers see them: who is ready, who will be, and whom to ask next.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use talon_sanitize::{Sanitized, inert};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::execute::{ExecuteError, ExecuteRequest};
use crate::lifecycle::reason::span;
use crate::lifecycle::{Desired, State};
use crate::live::{InFlight, Live};
use crate::name::PluginName;
use crate::spec::{Dialect, PluginSpec};

/// How many calls of one plugin may wait for an instance to become ready. The guard's admission layer keeps
/// the number far below; this bounds callers without a guard. Beyond it a call is refused at once, retryable.
pub const MAX_WAITING_CALLS: usize = 1024;

/// What is known of one instance. Replaced as a whole by its driver after every step.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) state: State,
    pub(crate) desired: Desired,
    /// Whether it is ready or becomes so without an operator: a call may wait for it.
    pub(crate) coming: bool,
    pub(crate) reason: Option<Sanitized>,
    /// Deaths within the window, as of the last event.
    pub(crate) deaths: u32,
    pub(crate) generation: u64,
    /// How often a process was started for it.
    pub(crate) starts: u64,
    pub(crate) pid: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) ready_since: Option<SystemTime>,
    pub(crate) start_to_ready: Option<Duration>,
    /// What the last start found; kept after the process is gone.
    pub(crate) last_start: Option<Arc<LastStart>>,
}

/// What a start found out about its program and jail.
#[derive(Debug)]
pub(crate) struct LastStart {
    pub(crate) report: talon_jail::Report,
    pub(crate) digest: String,
    pub(crate) dialect: Dialect,
}

impl View {
    pub(crate) fn new(desired: Desired) -> Self {
        Self {
            state: State::Discovered,
            desired,
            coming: desired == Desired::Up,
            reason: None,
            deaths: 0,
            generation: 0,
            starts: 0,
            pid: None,
            uid: None,
            ready_since: None,
            start_to_ready: None,
            last_start: None,
        }
    }
}

/// Where one driver puts what it knows and who takes its calls.
pub(crate) struct Slot {
    pub(crate) index: u32,
    pub(crate) view: ArcSwap<View>,
    pub(crate) live: ArcSwapOption<Live>,
}

impl Slot {
    pub(crate) fn in_flight(&self) -> usize {
        self.live.load().as_ref().map_or(0, |live| live.in_flight())
    }
}

/// All instances of one plugin.
pub(crate) struct Pool {
    pub(crate) name: PluginName,
    pub(crate) slots: Vec<Arc<Slot>>,
    /// Counts up whenever a view changed.
    pub(crate) changed: watch::Sender<u64>,
    ready_wait: Duration,
    max_message_bytes: usize,
    waiting: AtomicUsize,
    /// Where the search for the least loaded begins, so that equals take turns. Held while one is chosen and
    /// the call counted in: between the two, another call would choose the same instance.
    turn: Mutex<usize>,
}

impl Pool {
    pub(crate) fn new(spec: &PluginSpec) -> Self {
        let desired = if spec.enabled { Desired::Up } else { Desired::Down };
        let slot = |index| {
            Arc::new(Slot {
                index,
                view: ArcSwap::from_pointee(View::new(desired)),
                live: ArcSwapOption::empty(),
            })
        };
        Self {
            name: spec.name.clone(),
            slots: (0..spec.instances.max(1)).map(slot).collect(),
            changed: watch::Sender::new(0),
            ready_wait: spec.lifecycle.ready_wait,
            max_message_bytes: spec.max_message_bytes,
            waiting: AtomicUsize::new(0),
            turn: Mutex::new(0),
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn views(&self) -> Vec<Arc<View>> {
        self.slots.iter().map(|slot| slot.view.load_full()).collect()
    }

    /// Waits until the views are as asked.
    pub(crate) async fn until(&self, mut holds: impl FnMut(&[Arc<View>]) -> bool) {
        let mut changes = self.changed.subscribe();
        loop {
            changes.borrow_and_update();
            if holds(&self.views()) {
                return;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Counts a call in at a ready instance, waiting for one if it comes back by itself.
    async fn acquire(&self, deadline: Option<Instant>) -> Result<InFlight, ExecuteError> {
        if let Some(flight) = self.pick(deadline) {
            return Ok(flight);
        }
        let _waiting = Waiting::enter(&self.waiting).ok_or_else(|| ExecuteError::Unavailable {
            reason: inert!("{} calls wait for it already", MAX_WAITING_CALLS),
            retryable: true,
        })?;
        let give_up = Instant::now() + self.ready_wait;
        let mut changes = self.changed.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(flight) = self.pick(deadline) {
                return Ok(flight);
            }
            if !self.slots.iter().any(|slot| slot.view.load().coming) {
                return Err(ExecuteError::Unavailable { reason: self.why_not_ready(), retryable: false });
            }
            if !matches!(timeout_at(give_up, changes.changed()).await, Ok(Ok(()))) {
                return Err(ExecuteError::Unavailable {
                    reason: inert!("not ready after {}: {}", span(self.ready_wait), self.why_not_ready()),
                    retryable: true,
                });
            }
        }
    }

    /// The least loaded ready instance, with the call counted in.
    fn pick(&self, deadline: Option<Instant>) -> Option<InFlight> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        *turn = turn.wrapping_add(1);
        let first = *turn;
        let count = self.slots.len();
        let ready = (0..count).filter_map(|step| {
            let slot = &self.slots[first.wrapping_add(step) % count];
            (slot.view.load().state == State::Ready).then(|| slot.live.load_full()).flatten()
        });
        // A driver tells that it is no longer ready before it closes the door, so a refusal here is no reason
        // to look again at once.
        ready.min_by_key(|live| live.in_flight())?.enter(deadline)
    }

    /// The state that matters most to a caller, and its reason.
    fn why_not_ready(&self) -> Sanitized {
        let views = self.views();
        let view = summary(&views);
        match (&view.reason, view.state) {
            (Some(reason), state) => inert!("{}: {}", state, reason),
            (None, State::Discovered) => inert!("not started; `talon plugin start {}` starts it", self.name),
            (None, state) => inert!("{}", state),
        }
    }
}

/// The instance that speaks for the plugin: the one that is most useful to a caller. A plugin is ready when one
/// instance is; it is failed only when none is any better.
pub(crate) fn summary(views: &[Arc<View>]) -> Arc<View> {
    let usefulness = |view: &&Arc<View>| match view.state {
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
    views.iter().min_by_key(usefulness).cloned().unwrap_or_else(|| Arc::new(View::new(Desired::Down)))
}

/// One of the calls that wait for an instance.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn enter(count: &'a AtomicUsize) -> Option<Self> {
        let waiting = Self(count);
        // Dropping it takes the count back, also when there was no room.
        (waiting.0.fetch_add(1, Ordering::Relaxed) < MAX_WAITING_CALLS).then_some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs calls on one plugin. Cheap to clone; it outlives the plugin's processes, restarts and all.
#[derive(Clone)]
pub struct Executor {
    pub(crate) pool: Arc<Pool>,
}

impl Executor {
    /// Runs one call on the least loaded ready instance and returns the undecoded `ToolResultResponse`.
    ///
    /// While the plugin starts, restarts or recovers, the call waits for it up to its `ready_wait` and its own
    /// deadline. Once it is on its way it is never repeated: whether an action took effect before a death is
    /// not known. Dropping the future cancels the call on the wire. An answer that comes after the deadline reaches
    /// nobody; what its stream is kept for then is said with `kill_overdue_after`.
    ///
    /// # Errors
    /// [`ExecuteError`]; at once when the plugin is stopped, failed or dies during the call.
    pub async fn execute(&self, request: ExecuteRequest) -> Result<Bytes, ExecuteError> {
        let began = Instant::now();
        let call = async {
            let flight = self.pool.acquire(request.deadline).await?;
            flight.execute(&request, self.pool.max_message_bytes).await
        };
        match request.deadline {
            None => call.await,
            Some(deadline) => match timeout_at(deadline, call).await {
                Ok(Err(ExecuteError::TimedOut { .. })) | Err(_) => {
                    Err(ExecuteError::TimedOut { waited: began.elapsed() })
                }
                Ok(answer) => answer,
            },
        }
    }

    /// Calls that wait for an instance to become ready.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pool.waiting()
    }

    /// Calls in flight, over all instances.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pool.slots.iter().map(|slot| slot.in_flight()).sum()
    }
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Executor").field(&self.pool.name).finish()
    }
}
