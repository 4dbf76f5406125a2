//! Runs a turn: facts in, effects performed.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use talon_llm::model::{Answer, ToolCall, Usage};
use talon_llm::route::catalog::ModelRef;
use talon_llm::route::fallback::Attempt;
use tokio::time::Instant;

use super::spec::{RunTurns, TurnEnd, TurnSpec, World};
use super::{Clock, Entry, Observe, Recollection};
use crate::answer::{self, Schema};
use crate::budget::Limit;
use crate::context::{Assembled, Stats, Summary};
use crate::journal::Transcript;
use crate::loop_context::{End, Failure, ToolResult};
use crate::machine::{Activity, Effect, Event, Fact, Phase, Record, Turn};
use crate::prompt::Prompt;
use crate::tools::Offer;

/// Runs turns on a [`World`].
#[derive(Clone)]
pub struct Driver {
    observe: Arc<dyn Observe>,
}

impl Driver {
    /// One whose turns nobody counts.
    #[must_use]
    pub fn new() -> Self {
        Self::observed(Arc::new(()))
    }

    /// One whose turns somebody counts.
    #[must_use]
    pub fn observed(observe: Arc<dyn Observe>) -> Self {
        Self { observe }
    }
}

impl Default for Driver {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl RunTurns for Driver {
    async fn run(&self, world: &World, spec: TurnSpec) -> TurnEnd {
        let caller = spec.caller.clone();
        let end = Box::pin(Running::new(world, spec, &*self.observe).run()).await;
        let reason = end.outcome.as_ref().map_or_else(|(word, _)| word.as_str(), |_| "done");
        tracing::info!(
            target: "agent",
            session = %caller.session, turn = caller.turn, correlation_id = %caller.correlation_id, subagent = %caller.subagent,
            reason, iterations = end.iterations, tool_calls = end.tool_calls, duration_ms = end.duration_ms,
            cost_pico_usd = end.cost_pico_usd, model = end.model, "a turn ended"
        );
        self.observe.ended(&caller, &end);
        end
    }
}

/// A turn that runs.
pub(super) struct Running<'w> {
    pub(super) world: &'w World,
    pub(super) observe: &'w dyn Observe,
    pub(super) spec: TurnSpec,
    pub(super) clock: Clock,
    pub(super) began: Instant,
    /// Since when it is in its state.
    entered: Instant,
    /// What led there.
    event: Event,
    pub(super) turn: Turn,
    /// What a model may be shown: what was said before and in this turn, and the summary of what was before that.
    pub(super) said: Transcript,
    pub(super) summary: Summary,
    /// Messages at the journal's beginning that the summary stands for, and the journal does not know it: half a turn.
    pub(super) unkept: usize,
    pub(super) schema: Option<Arc<Schema>>,
    pub(super) prompt: Prompt,
    pub(super) recalled: Recollection,
    pub(super) offer: Arc<Offer>,
    /// What the journal has of the turn, as far as it is not rebuilt yet.
    pub(super) replay: VecDeque<Entry>,
    /// Whether the next fact is one of these.
    pub(super) rebuilt: bool,
    /// Whether clients have still to be told where an interrupted turn goes on.
    pub(super) resumed: bool,
    /// Whether the last one was, so that what it brought is written down already.
    pub(super) kept: bool,
    /// The last calls and what came of them.
    pub(super) batch: (Vec<ToolCall>, Vec<ToolResult>),
    pub(super) question: Option<Assembled>,
    /// What the window of the model that is asked has to take, where that was looked at; otherwise 0.
    pub(super) needed: u64,
    /// What was heard of an answer that is not whole yet.
    pub(super) heard: String,
    pub(super) account: Account,
}

/// What a turn's end tells.
#[derive(Default)]
pub(super) struct Account {
    pub(super) pico_usd: u128,
    /// What the machine knows of it.
    pub(super) micro_usd: u64,
    /// What the last answer added to that.
    pub(super) last_micro_usd: u64,
    /// Of questions that are not the machine's: summaries.
    pub(super) usage: Usage,
    /// Of all questions: the latest [`MAX_ATTEMPTS`].
    pub(super) attempts: VecDeque<Attempt>,
    /// Earlier ones, which are not kept.
    pub(super) attempts_left_out: usize,
    pub(super) model: Option<ModelRef>,
    pub(super) stats: Option<Stats>,
    /// Plugin, action, and whether it succeeded.
    pub(super) calls: Vec<(String, String, bool)>,
    /// A word that says more than the failure's own.
    pub(super) word: Option<&'static str>,
    pub(super) told_tight: bool,
}

/// Picodollars of a millionth of a dollar.
pub(super) const PICO_A_MICRO: u128 = 1_000_000;

/// Attempts of one turn that are kept and told: more than a turn has where not every question falls back. Of more the earliest are left
/// out, and a notice says how many. To be changed here.
pub(super) const MAX_ATTEMPTS: usize = 64;

impl Account {
    /// Keeps what one question tried.
    pub(super) fn tried(&mut self, attempts: Vec<Attempt>) {
        self.attempts.extend(attempts);
        let too_many = self.attempts.len().saturating_sub(MAX_ATTEMPTS);
        self.attempts.drain(..too_many);
        self.attempts_left_out += too_many;
    }

    /// Counts what was spent.
    pub(super) fn spend(&mut self, pico_usd: u128) {
        self.pico_usd = self.pico_usd.saturating_add(pico_usd);
    }

    /// What the machine is told of with an answer: all that was spent since the last, in millionths of a dollar. Rounded up over the
    /// whole of the turn and not each time.
    pub(super) fn told(&mut self) -> u64 {
        let all = u64::try_from(self.pico_usd.div_ceil(PICO_A_MICRO)).unwrap_or(u64::MAX);
        self.last_micro_usd = all.saturating_sub(self.micro_usd);
        self.micro_usd = all;
        self.last_micro_usd
    }
}

/// What comes behind effects.
pub(super) enum Next {
    Fact(Fact),
    End(TurnEnd),
}

impl<'w> Running<'w> {
    fn new(world: &'w World, spec: TurnSpec, observe: &'w dyn Observe) -> Self {
        let now = Instant::now();
        Self {
            world,
            observe,
            clock: Clock::start(spec.outer.clone()),
            began: now,
            entered: now,
            turn: Turn::new(spec.request.clone(), spec.budgets.clone()),
            said: Transcript::default(),
            summary: Summary::default(),
            unkept: 0,
            schema: spec.schema.clone(),
            prompt: spec.prompt.clone(),
            recalled: Recollection::default(),
            offer: Arc::new(Offer::default()),
            replay: VecDeque::new(),
            rebuilt: false,
            resumed: false,
            kept: false,
            event: Event::StartLoop,
            batch: (Vec::new(), Vec::new()),
            question: None,
            needed: 0,
            heard: String::new(),
            account: Account::default(),
            spec,
        }
    }

    async fn run(mut self) -> TurnEnd {
        let mut fact = match self.begin().await {
            Ok(()) => Fact::Ready,
            Err(failure) => self.new_failure(failure),
        };
        loop {
            let effects = self.advance(fact);
            fact = match self.perform(effects).await {
                Ok(Next::Fact(fact)) => fact,
                Ok(Next::End(end)) => return end,
                Err(failure) => self.new_failure(failure),
            };
        }
    }

    /// Nothing that an interrupted turn went through ended it.
    fn new_failure(&mut self, failure: Failure) -> Fact {
        self.rebuilt = false;
        Fact::Failed(failure)
    }

    /// Hands a fact to the machine, and tells of its transitions. One that it does not take is a defect, which ends the turn.
    fn advance(&mut self, fact: Fact) -> Vec<Effect> {
        let rebuilt = std::mem::take(&mut self.rebuilt);
        self.kept = rebuilt;
        let elapsed = self.clock.elapsed();
        let taken = self.turn.take(fact, elapsed).or_else(|refused| {
            tracing::error!(target: "agent", session = %self.spec.caller.session, %refused, "a fact was not taken");
            self.turn.take(Fact::Failed(Failure::Internal(refused.to_string())), elapsed)
        });
        match taken {
            Ok(advance) => {
                self.event = advance.records.last().map_or(self.event, |record| record.event);
                if !rebuilt {
                    advance.records.iter().for_each(|record| self.moved(record));
                }
                advance.effects
            }
            // It had ended already.
            Err(refused) => {
                let reason = Failure::Internal(refused.to_string());
                let sentence = reason.to_string();
                vec![Effect::TellEnd(End { reason, sentence, partial: None })]
            }
        }
    }

    fn moved(&mut self, record: &Record) {
        let in_state = std::mem::replace(&mut self.entered, Instant::now()).elapsed();
        let (caller, left) = (&self.spec.caller, &record.budgets);
        tracing::info!(
            target: "agent",
            session = %caller.session, turn = caller.turn, correlation_id = %caller.correlation_id, subagent = %caller.subagent,
            from = %record.from, state = %record.to, event = %record.event, iteration = record.iteration,
            iterations_left = left.iterations_left, tool_errors_left = left.tool_errors_left, retries_left = left.retries_left,
            left_ms = left.left_ms, tokens = left.tokens, micro_usd = left.micro_usd, micro_usd_left = left.micro_usd_left,
            "the loop moved"
        );
        self.observe.transition(caller, record, in_state);
        self.tell_loop(record.to, record.event, record.phase, record.iteration, &record.budgets);
    }

    /// Performs effects until one of them brings a fact, which is the last one's to do.
    async fn perform(&mut self, effects: Vec<Effect>) -> Result<Next, Failure> {
        for effect in effects {
            match effect {
                Effect::PrepareContext => self.prepare().await?,
                Effect::AskModel { .. } => return self.ask().await.map(Next::Fact),
                Effect::AppendAnswer => self.append_answer().await?,
                Effect::RunTools { calls } => return self.run_tools(&calls).await.map(Next::Fact),
                Effect::AppendResults => self.append_results().await?,
                Effect::CheckAnswer => {
                    let answer = self.turn.context().answer().cloned().unwrap_or_else(Answer::default);
                    let verdict = answer::check(&answer, self.schema.as_deref());
                    // It follows from the answer, and is not known anew.
                    self.rebuilt = !self.replay.is_empty();
                    return Ok(Next::Fact(Fact::Checked(verdict)));
                }
                Effect::Warn { note } => self.note(note, false).await?,
                Effect::Feedback { text } => self.note(text, true).await?,
                // Whatever ran was dropped with the future that waited for it.
                Effect::CancelRunning => {}
                Effect::Store => self.store().await,
                Effect::TellDone(finished) => return Ok(Next::End(self.done(finished))),
                Effect::TellEnd(end) => return Ok(Next::End(self.failed(end))),
            }
        }
        Err(Failure::Internal("the machine asked for nothing more".to_owned()))
    }

    /// The clients' phase besides that of a transition.
    pub(super) fn show(&self, activity: Activity) {
        let (state, context) = (self.turn.state(), self.turn.context());
        let phase = Phase::of(state, activity);
        self.tell_loop(state, self.event, phase, context.iteration(), &context.budget_use());
    }

    /// All that the journal has of an interrupted turn is done again, and what comes is new.
    pub(super) fn caught_up(&mut self) {
        if std::mem::take(&mut self.resumed) {
            self.show(Activity::Performing);
        }
    }

    /// What is waited for, unless the turn is ended meanwhile.
    pub(super) async fn unless_stopped<T>(&self, what: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            failure = self.stopped() => Err(failure),
            value = what => Ok(value),
        }
    }

    /// Somebody lets go of it, or its time is over.
    pub(super) async fn stopped(&self) -> Failure {
        let most = self.spec.budgets.wall_time;
        tokio::select! {
            biased;
            () = self.spec.cancel.cancelled() => Failure::Cancelled,
            () = self.clock.reached(most) => Failure::Limit(Limit::WallTime { most }),
        }
    }
}
