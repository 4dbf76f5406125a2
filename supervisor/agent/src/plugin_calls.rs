//! Calls of plugins that are in flight for a turn: to them plugins' completions are charged, and they end with
//! them.
//!
//! ```text
//! turn ── begin(plugin) ─► an id that only this call has ─► supervisor ─► plugin: ID.<the supervisor's part>
//! plugin ── model.sock: a completion for ID.… ─► find(plugin, ID.…) ─► the turn's pins, budget and account
//! ```
//!
//! The agent makes the first part of the id and knows it before the plugin is asked, so a plugin's first
//! completion cannot be earlier than the entry here. A plugin is believed if the id is that of a call of its own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use talon_agent_settings::PICOS_PER_MICRO;
use talon_llm::model::Usage;
use talon_llm::route::router::Pins;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use ulid::Ulid;

use crate::traces::SpanContext;

/// How long a turn waits for completions whose calls have ended, to have their cost. They are cancelled then, which takes as
/// long as the runtime needs to notice; one that took longer would count in its session's costs only, which the log says.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

/// What the completions of a turn's calls keep to, and what they used.
#[derive(Debug)]
pub struct TurnModelUse {
    session: String,
    pins: Pins,
    max_micro_usd: Option<u64>,
    spent: Mutex<ModelUse>,
    /// What the turn had spent before the calls that run now.
    before_pico_usd: Mutex<u128>,
    /// The completions that are being made.
    running: TaskTracker,
}

/// What completions used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelUse {
    /// Their cost, in picodollars.
    pub pico_usd: u128,
    /// Their tokens.
    pub usage: Usage,
    /// The models that saw their text, as provider/name.
    pub models: BTreeSet<String>,
}

impl TurnModelUse {
    /// For a turn with these rules; `max_micro_usd` is its budget.
    #[must_use]
    pub fn new(session: impl Into<String>, pins: Pins, max_micro_usd: Option<u64>) -> Arc<Self> {
        Arc::new(Self {
            session: session.into(),
            pins,
            max_micro_usd,
            spent: Mutex::default(),
            before_pico_usd: Mutex::default(),
            running: TaskTracker::new(),
        })
    }

    /// Sets what the turn has spent otherwise.
    pub fn set_before(&self, pico_usd: u128) {
        *self.before_pico_usd.lock() = pico_usd;
    }

    /// What was used since this was called last, once all calls have ended: with the completions that ended with them.
    pub async fn settle(&self) -> ModelUse {
        self.running.close();
        if timeout(SETTLE_TIMEOUT, self.running.wait()).await.is_err() {
            let (session, running) = (&self.session, self.running.len());
            tracing::warn!(target: "agent", session, running, "completions of plugins go on after their calls: the turn is not charged for them");
        }
        self.running.reopen();
        std::mem::take(&mut *self.spent.lock())
    }

    /// Adds what a completion used.
    pub fn add(&self, used: &ModelUse) {
        let mut spent = self.spent.lock();
        spent.pico_usd = spent.pico_usd.saturating_add(used.pico_usd);
        spent.usage.add(used.usage);
        spent.models.extend(used.models.iter().cloned());
    }

    /// The turn's budget in millionths of a dollar, if nothing is left of it.
    #[must_use]
    pub fn exhausted_budget(&self) -> Option<u64> {
        let spent = self.before_pico_usd.lock().saturating_add(self.spent.lock().pico_usd);
        self.max_micro_usd.filter(|most| spent / PICOS_PER_MICRO >= u128::from(*most))
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The models that request or session selects, and whether only this machine's may be asked.
    #[must_use]
    pub fn pins(&self) -> &Pins {
        &self.pins
    }
}

/// A call of a plugin, in flight.
#[derive(Debug)]
struct PluginCall {
    plugin: String,
    turn: Arc<TurnModelUse>,
    completions: AtomicU32,
    ended: CancellationToken,
    /// The call's span.
    trace: Option<SpanContext>,
}

impl PluginCall {
    /// Counts one more completion; false if it had `most` already.
    fn count(&self, most: u32) -> bool {
        let less = |made: u32| (made < most).then(|| made + 1);
        self.completions.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// A completion for a call. Its turn waits for its end to have its cost.
#[derive(Debug)]
pub struct CallCompletion {
    call: Arc<PluginCall>,
    _running: TaskTrackerToken,
}

impl CallCompletion {
    /// Counts it with the others of its call; false if the call had `most` already.
    #[must_use]
    pub fn count(&self, most: u32) -> bool {
        self.call.count(most)
    }

    /// The turn that causes the call.
    #[must_use]
    pub fn turn(&self) -> &Arc<TurnModelUse> {
        &self.call.turn
    }

    /// Cancelled when the call is over.
    #[must_use]
    pub fn ended(&self) -> &CancellationToken {
        &self.call.ended
    }

    /// The call's span.
    #[must_use]
    pub fn trace(&self) -> Option<SpanContext> {
        self.call.trace
    }
}

/// The calls of plugins that are in flight. There are as many as turns make at once.
#[derive(Debug, Default)]
pub struct PluginCalls(Mutex<HashMap<String, Arc<PluginCall>>>);

impl PluginCalls {
    /// Begins a call, whose span this is; it is in flight until the guard is dropped.
    pub fn begin(
        self: &Arc<Self>,
        plugin: &str,
        turn: &Arc<TurnModelUse>,
        trace: Option<SpanContext>,
    ) -> PluginCallGuard {
        let id = Ulid::generate().to_string();
        let call = Arc::new(PluginCall {
            plugin: plugin.to_owned(),
            turn: Arc::clone(turn),
            completions: AtomicU32::new(0),
            ended: CancellationToken::new(),
            trace,
        });
        self.0.lock().insert(id.clone(), Arc::clone(&call));
        PluginCallGuard { calls: Arc::clone(self), id, call }
    }

    /// Begins a completion for the call of this plugin that the plugin names, by the id that it got from the supervisor.
    #[must_use]
    pub fn find(&self, plugin: &str, wire_id: &str) -> Option<CallCompletion> {
        // The supervisor appends a dot and an id of its own, which has no dot.
        let (id, _) = wire_id.rsplit_once('.')?;
        // The token is taken under the lock: a call that has ended gets no further completion, so its turn waits for all.
        let calls = self.0.lock();
        let call = calls.get(id).filter(|call| call.plugin == plugin)?;
        Some(CallCompletion { _running: call.turn.running.token(), call: Arc::clone(call) })
    }
}

/// Ends a call when it is dropped.
#[derive(Debug)]
#[must_use = "the call ends with it"]
pub struct PluginCallGuard {
    calls: Arc<PluginCalls>,
    id: String,
    call: Arc<PluginCall>,
}

impl PluginCallGuard {
    /// The id for the supervisor.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for PluginCallGuard {
    fn drop(&mut self) {
        self.calls.0.lock().remove(&self.id);
        self.call.ended.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(budget: Option<u64>) -> Arc<TurnModelUse> {
        TurnModelUse::new("s", Pins::default(), budget)
    }

    // Promises: EXT-122
    #[test]
    fn only_the_plugin_itself_may_name_a_call_and_only_while_it_runs() {
        let (calls, turn) = (Arc::<PluginCalls>::default(), turn(None));
        let guard = calls.begin("lua", &turn, None);
        let wire = format!("{}.{}", guard.id(), Ulid::generate());
        let call = calls.find("lua", &wire).expect("in flight");
        assert!(calls.find("other", &wire).is_none());
        assert!(calls.find("lua", guard.id()).is_none(), "not the id that plugins see");
        assert!(calls.find("lua", "").is_none());
        assert!(!call.ended().is_cancelled());
        drop(guard);
        assert!(call.ended().is_cancelled());
        assert!(calls.find("lua", &wire).is_none());
    }

    #[test]
    fn two_calls_have_ids_and_counts_of_their_own() {
        let (calls, turn) = (Arc::<PluginCalls>::default(), turn(None));
        let (first, second) = (calls.begin("p", &turn, None), calls.begin("p", &turn, None));
        assert_ne!(first.id(), second.id());
        assert!(first.call.count(1));
        assert!(!first.call.count(1));
        assert!(second.call.count(1));
    }

    // Promises: EXT-124
    #[tokio::test]
    async fn a_turns_budget_counts_what_it_spent_before_and_what_completions_spent() {
        let turn = turn(Some(10));
        turn.set_before(9 * PICOS_PER_MICRO);
        assert_eq!(turn.exhausted_budget(), None);
        turn.add(&ModelUse { pico_usd: PICOS_PER_MICRO, ..ModelUse::default() });
        assert_eq!(turn.exhausted_budget(), Some(10));
        assert_eq!(turn.settle().await.pico_usd, PICOS_PER_MICRO);
        assert_eq!(turn.settle().await, ModelUse::default());
    }

    // Promises: EXT-171
    #[tokio::test(start_paused = true)]
    async fn a_turn_waits_for_the_cost_of_what_ended_with_its_calls() {
        let (calls, turn) = (Arc::<PluginCalls>::default(), turn(None));
        let guard = calls.begin("p", &turn, None);
        let completion = calls.find("p", &format!("{}.x", guard.id())).expect("in flight");
        let cancelled = tokio::spawn(async move {
            completion.ended().cancelled().await;
            // It takes some time to notice.
            tokio::time::sleep(SETTLE_TIMEOUT / 2).await;
            completion.turn().add(&ModelUse { pico_usd: 7, ..ModelUse::default() });
        });
        drop(guard);
        assert_eq!(turn.settle().await.pico_usd, 7);
        cancelled.await.expect("it ends");
        // One that does not end keeps nobody.
        let guard = calls.begin("p", &turn, None);
        let _kept = calls.find("p", &format!("{}.x", guard.id())).expect("in flight");
        drop(guard);
        assert_eq!(turn.settle().await, ModelUse::default());
    }
}
