//! Runs a turn: passes facts to the machine and performs its effects.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use parking_lot::Mutex;
use talon_llm::model::{Answer, ToolCall};
use talon_llm::route::catalog::ModelRef;
use tokio::time::Instant;

use super::account::TurnAccount;
use super::checked_text::CheckedText;
use super::host::DeclaredPlugins;
use super::spec::{TurnEnd, TurnEnvironment, TurnRunner, TurnSpec};
use super::turn_trace::TurnTrace;
use super::{Clock, Recollection, TurnObserver};
use crate::answer::{self, AnswerVerdict, Schema};
use crate::budget::{Budgets, Limit};
use crate::context::{AssembledRequest, Sections, Summary};
use crate::hooks::HookedRequest;
use crate::journal::{JournalEntry, Transcript};
use crate::loop_context::{Failure, FailureReport};
use crate::machine::{Activity, Effect, Event, Fact, Phase, TransitionRecord, Turn};
use crate::media::Attachment;
use crate::originals::Originals;
use crate::plugin_calls::TurnModelUse;
use crate::prompt::Prompt;
use crate::tool_result::ToolResult;
use crate::tools::Offer;

/// Runs turns in a [`TurnEnvironment`].
#[derive(Clone)]
pub struct Driver {
    observe: Arc<dyn TurnObserver>,
}

impl Driver {
    /// A driver without metrics.
    #[must_use]
    pub fn new() -> Self {
        Self::observed(Arc::new(()))
    }

    /// A driver whose turns are observed.
    #[must_use]
    pub fn observed(observe: Arc<dyn TurnObserver>) -> Self {
        Self { observe }
    }
}

impl Default for Driver {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl TurnRunner for Driver {
    async fn run(&self, environment: &TurnEnvironment, spec: TurnSpec) -> TurnEnd {
        let caller = spec.caller.clone();
        if spec.resumes.is_none() {
            self.observe.on_turn_begin(&spec);
        }
        let end = Box::pin(TurnRun::new(environment, spec, &*self.observe).run()).await;
        let reason = end.outcome.as_ref().map_or_else(|(word, _)| word.as_str(), |_| "done");
        tracing::info!(
            target: "agent",
            session = %caller.session, turn = caller.turn, correlation_id = %caller.correlation_id, subagent = %caller.subagent,
            reason, iterations = end.iterations, tool_calls = end.tool_calls, duration_ms = end.duration_ms,
            cost_pico_usd = end.cost_pico_usd, model = end.model, "a turn ended"
        );
        self.observe.on_turn_end(&caller, &end);
        end
    }
}

/// A running turn.
pub(super) struct TurnRun<'w> {
    pub(super) environment: &'w TurnEnvironment,
    pub(super) observe: &'w dyn TurnObserver,
    pub(super) spec: TurnSpec,
    pub(super) clock: Clock,
    pub(super) began: Instant,
    /// When it entered its state.
    entered: Instant,
    /// The event that led there.
    event: Event,
    pub(super) turn: Turn,
    /// What a model may be shown: the messages of earlier turns and of this one, and the summary of what came
    /// before.
    pub(super) transcript: Transcript,
    pub(super) summary: Summary,
    /// How many messages at the journal's beginning the summary covers without the journal knowing it: a part
    /// of a turn.
    pub(super) unkept: usize,
    pub(super) schema: Option<Arc<Schema>>,
    pub(super) prompt: Prompt,
    pub(super) recalled: Recollection,
    pub(super) offer: Arc<Offer>,
    /// What plugins declared while hooks saw the message, until the turn's tools are chosen.
    pub(super) plugins: Option<DeclaredPlugins>,
    /// The files that the session has.
    pub(super) attachments: Vec<Attachment>,
    /// What marked pieces of results were before.
    pub(super) originals: Originals,
    /// Whether those of earlier turns were read.
    pub(super) loaded_originals: bool,
    /// Tools that searches of this turn loaded: those of the latest search first, the best of each first.
    pub(super) loaded: Mutex<Vec<String>>,
    /// Models that saw queries of such searches.
    pub(super) embedding_models: Mutex<BTreeSet<String>>,
    /// The journal's entries of this turn that are not replayed yet.
    pub(super) replay: VecDeque<JournalEntry>,
    /// Whether the next fact comes from the journal.
    pub(super) rebuilt: bool,
    /// Whether clients still have to be notified where an interrupted turn continues.
    pub(super) resumed: bool,
    /// Whether the last fact came from the journal, so that its results are already written.
    pub(super) already_written: bool,
    /// The last calls and their results.
    pub(super) batch: (Vec<ToolCall>, Vec<ToolResult>),
    /// Whether the turn has a plan, so that the model may write it.
    pub(super) has_plan: bool,
    /// Whether a person approved it in this turn.
    pub(super) plan_approved: AtomicBool,
    pub(super) question: Option<AssembledRequest>,
    /// The budgets of the last question.
    pub(super) sections: Sections,
    /// The window that the model needs, if it was estimated; otherwise 0.
    pub(super) needed: u64,
    /// The model that the last question was counted for.
    pub(super) counted_for: Option<ModelRef>,
    /// The text received so far of an unfinished answer.
    pub(super) partial_text: String,
    pub(super) account: TurnAccount,
    /// What plugins ask of models in the turn's calls.
    pub(super) model_use: Arc<TurnModelUse>,
    /// Entries that go to the disk while hooks run, or with the next entry.
    pub(super) unwritten: Vec<JournalEntry>,
    /// What filters and request hooks made of the message, if there were any.
    pub(super) hooked: Option<Box<HookedRequest>>,
    /// Whether people may not see the text of the last answer, since response hooks have not.
    pub(super) withheld: bool,
    /// The text that people get once the journal has what response hooks said of it.
    pub(super) checked_text: Option<CheckedText>,
    /// What hooks noted.
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) trace: Option<TurnTrace>,
    /// How many messages of this turn its client knew at its beginning.
    pub(super) known_to_client: usize,
}

/// The turn's limits: where no person can answer, the model may ask none.
pub(super) fn allowed_budgets(spec: &TurnSpec) -> Budgets {
    let clarifications = if spec.can_answer && !spec.no_tools { spec.budgets.clarifications } else { 0 };
    Budgets { clarifications, ..spec.budgets.clone() }
}

/// What follows after effects were performed.
pub(super) enum DriveStep {
    Fact(Fact),
    End(TurnEnd),
}

impl<'w> TurnRun<'w> {
    fn new(environment: &'w TurnEnvironment, spec: TurnSpec, observe: &'w dyn TurnObserver) -> Self {
        let now = Instant::now();
        let turn = Turn::new(spec.request.clone(), allowed_budgets(&spec));
        let begin = |position| {
            TurnTrace::begin(Arc::clone(&environment.tracer), position, turn.state(), Event::StartLoop)
        };
        Self {
            trace: spec.trace.map(begin),
            environment,
            observe,
            clock: Clock::start(spec.outer.clone()),
            began: now,
            entered: now,
            turn,
            transcript: Transcript::default(),
            summary: Summary::default(),
            unkept: 0,
            schema: spec.schema.clone(),
            prompt: spec.prompt.clone(),
            recalled: Recollection::default(),
            offer: Arc::new(Offer::default()),
            plugins: None,
            attachments: Vec::new(),
            originals: Originals::default(),
            loaded_originals: false,
            loaded: Mutex::default(),
            embedding_models: Mutex::default(),
            replay: VecDeque::new(),
            rebuilt: false,
            resumed: false,
            already_written: false,
            event: Event::StartLoop,
            batch: (Vec::new(), Vec::new()),
            has_plan: false,
            plan_approved: AtomicBool::new(false),
            question: None,
            sections: Sections::default(),
            needed: 0,
            counted_for: None,
            partial_text: String::new(),
            account: TurnAccount::default(),
            model_use: TurnModelUse::new(
                spec.caller.session.clone(),
                spec.pins.clone(),
                spec.budgets.micro_usd,
            ),
            unwritten: Vec::new(),
            hooked: None,
            withheld: false,
            checked_text: None,
            metadata: BTreeMap::new(),
            known_to_client: 0,
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
                Ok(DriveStep::Fact(fact)) => fact,
                Ok(DriveStep::End(end)) => {
                    self.end_trace(&end);
                    return end;
                }
                Err(failure) => self.new_failure(failure),
            };
        }
    }

    /// A failure that is not part of the replayed journal.
    fn new_failure(&mut self, failure: Failure) -> Fact {
        self.rebuilt = false;
        Fact::Failed(failure)
    }

    /// Passes a fact to the machine and reports its transitions. A fact that the machine rejects is a defect,
    /// which ends the turn.
    fn advance(&mut self, fact: Fact) -> Vec<Effect> {
        let rebuilt = std::mem::take(&mut self.rebuilt);
        self.already_written = rebuilt;
        let elapsed = self.clock.elapsed();
        let taken = self.turn.apply(fact, elapsed).or_else(|refused| {
            tracing::error!(target: "agent", session = %self.spec.caller.session, %refused, "a fact was not taken");
            self.turn.apply(Fact::Failed(Failure::Internal(refused.to_string())), elapsed)
        });
        match taken {
            Ok(advance) => {
                self.event = advance.records.last().map_or(self.event, |record| record.event);
                if !rebuilt {
                    for record in &advance.records {
                        self.notify_transition(record);
                        self.trace_transition(record);
                    }
                }
                advance.effects
            }
            // The turn had already ended.
            Err(refused) => {
                let reason = Failure::Internal(refused.to_string());
                let sentence = reason.to_string();
                vec![Effect::TellEnd(FailureReport { reason, sentence, partial: None })]
            }
        }
    }

    fn notify_transition(&mut self, record: &TransitionRecord) {
        let in_state = std::mem::replace(&mut self.entered, Instant::now()).elapsed();
        let (caller, left) = (&self.spec.caller, &record.budgets);
        // With what is said at its end, a turn has one line unless somebody wants more.
        tracing::debug!(
            target: "agent",
            session = %caller.session, turn = caller.turn, correlation_id = %caller.correlation_id, subagent = %caller.subagent,
            from = %record.from, state = %record.to, event = %record.event, iteration = record.iteration,
            iterations_left = left.iterations_left, tool_errors_left = left.tool_errors_left, retries_left = left.retries_left,
            left_ms = left.left_ms, tokens = left.tokens, micro_usd = left.micro_usd, micro_usd_left = left.micro_usd_left,
            "the loop moved"
        );
        self.observe.on_transition(caller, record, in_state);
        self.notify_loop_state(record.to, record.event, record.phase, record.iteration, &record.budgets);
    }

    /// Performs effects until one of them produces a fact, which only the last one does.
    async fn perform(&mut self, effects: Vec<Effect>) -> Result<DriveStep, Failure> {
        for effect in effects {
            match effect {
                Effect::PrepareContext => self.prepare().await?,
                Effect::AskModel { .. } => return self.ask().await.map(DriveStep::Fact),
                Effect::AppendAnswer => self.append_answer().await?,
                Effect::RunTools { calls } => return self.run_tools(&calls).await.map(DriveStep::Fact),
                Effect::AskPerson { call } => return self.ask_person(&call).await.map(DriveStep::Fact),
                Effect::AppendResults => self.append_results().await?,
                Effect::CheckAnswer => {
                    let answer = self.turn.context().answer().cloned().unwrap_or_else(Answer::default);
                    let verdict = match self.cut_as_wanted(&answer) {
                        Some(cut) => AnswerVerdict::Accepted(cut),
                        None => answer::check(&answer, self.schema.as_deref()),
                    };
                    let verdict = self.apply_response_hooks(verdict).await?;
                    if !matches!(verdict, AnswerVerdict::Accepted(_)) {
                        // The model is asked again, which may take long.
                        self.write_unwritten().await?;
                    }
                    // The verdict follows from the answer, so it is not in the journal.
                    self.rebuilt = !self.replay.is_empty();
                    return Ok(DriveStep::Fact(Fact::Checked(verdict)));
                }
                Effect::Warn { note } => self.note(note, false).await?,
                Effect::Feedback { text } => self.note(text, true).await?,
                // Everything that ran was dropped together with the future that waited for it.
                Effect::CancelRunning => {}
                Effect::Store => {
                    if let Err(reason) = self.store().await {
                        // The machine has ended already, and nobody gets an answer that a restart would not know.
                        let sentence = reason.to_string();
                        let report = FailureReport { reason, sentence, partial: None };
                        return Ok(DriveStep::End(self.finish_with_failure(report)));
                    }
                }
                Effect::TellDone(finished) => return Ok(DriveStep::End(self.finish_with_answer(finished))),
                Effect::TellHandedOver => return Ok(DriveStep::End(self.finish_with_client_calls())),
                Effect::TellEnd(end) => return Ok(DriveStep::End(self.finish_with_failure(end))),
            }
        }
        Err(Failure::Internal("the machine asked for nothing more".to_owned()))
    }

    /// Sets the activity that refines the phase shown to clients.
    pub(super) fn set_activity(&self, activity: Activity) {
        let (state, context) = (self.turn.state(), self.turn.context());
        let phase = Phase::of(state, activity);
        self.notify_loop_state(state, self.event, phase, context.iteration(), &context.budget_use());
    }

    /// Ends the replay: the journal has nothing more of the interrupted turn.
    pub(super) fn finish_replay(&mut self) {
        if std::mem::take(&mut self.resumed) {
            self.set_activity(Activity::Performing);
        }
    }

    /// Waits for a future, unless the turn is stopped first.
    pub(super) async fn unless_stopped<T>(&self, what: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            failure = self.wait_for_stop() => Err(failure),
            value = what => Ok(value),
        }
    }

    /// Returns when the turn is cancelled or its time is over.
    pub(super) async fn wait_for_stop(&self) -> Failure {
        let most = self.spec.budgets.wall_time;
        tokio::select! {
            biased;
            () = self.spec.cancel.cancelled() => Failure::Cancelled,
            () = self.clock.reached(most) => Failure::Limit(Limit::WallTime { most }),
        }
    }
}
