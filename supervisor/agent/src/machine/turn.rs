//! The machine with its context: takes facts, returns effects and records.

use std::time::Duration;

use talon_llm::model::Answer;

use super::{Effect, Event, State, TransitionError, TransitionRecord, step, table};
use crate::answer::AnswerVerdict;
use crate::budget::{BudgetCheck, Budgets, Limit};
use crate::loop_context::{Failure, LoopContext};
use crate::tool_result::ToolResult;

/// What the driver reports.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// Everything that the turn needs is loaded.
    Ready,
    /// The model answered.
    Answered {
        /// The answer.
        answer: Answer,
        /// The cost of question and answer with all attempts, in millionths of a US dollar; 0 if unknown.
        micro_usd: u64,
    },
    /// The tools ran: one result per call of the answer, in order ([`crate::tools::Batch`]).
    Executed(Vec<ToolResult>),
    /// The person answered the model's question, or does not want to: the result of its call.
    Clarified(ToolResult),
    /// The answer was checked.
    Checked(AnswerVerdict),
    /// Something failed without which the turn cannot continue.
    Failed(Failure),
}

/// The result of a fact.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Advance {
    /// The effects, in this order.
    pub effects: Vec<Effect>,
    /// The transitions, one record each.
    pub records: Vec<TransitionRecord>,
}

/// A turn. It depends on its facts alone, so that the facts stored with the session rebuild it after a
/// restart.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    state: State,
    context: LoopContext,
}

impl Turn {
    /// Starts a turn.
    #[must_use]
    pub fn new(goal: impl Into<String>, budgets: Budgets) -> Self {
        Self { state: State::Init, context: LoopContext::new(goal, budgets) }
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &LoopContext {
        &self.context
    }

    /// The most transitions of a turn: one at its start, one at its end, and at most four for each question
    /// to the model.
    #[must_use]
    pub fn max_transitions(budgets: &Budgets) -> u64 {
        2 + 4 * u64::from(budgets.iterations.get())
    }

    /// Applies a fact, and sends all events that follow from it without an effect in between. `elapsed` is
    /// the driver's clock since the turn started.
    ///
    /// # Errors
    /// [`TransitionError`] if the turn does not expect this fact; the turn is unchanged.
    pub fn apply(&mut self, fact: Fact, elapsed: Duration) -> Result<Advance, TransitionError> {
        let mut next = self.clone();
        let advance = next.advance(fact, elapsed)?;
        *self = next;
        Ok(advance)
    }

    fn advance(&mut self, fact: Fact, elapsed: Duration) -> Result<Advance, TransitionError> {
        let mut advance = Advance::default();
        self.context.advance_clock(elapsed);
        match fact {
            Fact::Ready => self.send(Event::StartLoop, &mut advance)?,
            Fact::Answered { answer, micro_usd } => {
                self.expect(Event::LlmResponse)?;
                self.context.record_answer(answer, micro_usd);
                self.send(Event::LlmResponse, &mut advance)?;
                self.evaluate(&mut advance)?;
            }
            Fact::Executed(results) => {
                self.expect(Event::ToolsExecuted)?;
                self.context.record_results(results);
                self.send(Event::ToolsExecuted, &mut advance)?;
                let event = match self.context.check_budgets() {
                    // No model is asked any more, so no limit matters.
                    _ if self.context.hands_over() => Event::HandOver,
                    BudgetCheck::Within(_) => Event::BudgetOk,
                    BudgetCheck::Exceeded(_) => Event::BudgetExceeded,
                };
                self.send(event, &mut advance)?;
            }
            Fact::Clarified(result) => {
                self.expect(Event::ClarificationReceived)?;
                self.context.record_clarification(result);
                self.send(Event::ClarificationReceived, &mut advance)?;
            }
            Fact::Checked(verdict) => {
                self.expect(Event::CompletionSuccess)?;
                self.context.record_verdict(verdict.clone());
                match verdict {
                    AnswerVerdict::Accepted(_) => self.send(Event::CompletionSuccess, &mut advance)?,
                    AnswerVerdict::Invalid(error) => match self.send(Event::CompletionRetry, &mut advance) {
                        Err(TransitionError::GuardFailed { .. }) => {
                            let why = self.retry_blocked_by().map_or(Failure::Answer(error), Failure::Limit);
                            self.fail(why, &mut advance)?;
                        }
                        sent => sent?,
                    },
                }
            }
            Fact::Failed(failure) => self.fail(failure, &mut advance)?,
        }
        Ok(advance)
    }

    /// Does not run tools whose results the model can no longer be asked about.
    fn evaluate(&mut self, advance: &mut Advance) -> Result<(), TransitionError> {
        if self.context.calls().is_empty() {
            return self.send(Event::ResponseNoTool, advance);
        }
        match self.context.exhausted_limit() {
            Some(limit) => self.fail(Failure::Limit(limit), advance),
            None if self.context.asks_person() => self.send(Event::RequestClarification, advance),
            None => self.send(Event::ResponseWithTools, advance),
        }
    }

    /// The limit that prevents a retry, other than the number of retries.
    fn retry_blocked_by(&self) -> Option<Limit> {
        if self.context.verdict_retries_left() == 0 {
            return None;
        }
        self.context.exhausted_limit().or_else(|| {
            (self.context.iterations_left() == 0)
                .then(|| Limit::Iterations { most: self.context.budgets().iterations.get() })
        })
    }

    fn fail(&mut self, failure: Failure, advance: &mut Advance) -> Result<(), TransitionError> {
        self.context.record_failure(failure);
        self.send(Event::Failure, advance)
    }

    /// Rejects a fact that this state does not expect, before the context changes.
    fn expect(&self, event: Event) -> Result<(), TransitionError> {
        let state = self.state;
        match table::find(state, event) {
            Some(_) => Ok(()),
            None if state.is_terminal() => Err(TransitionError::Ended { state, event }),
            None => Err(TransitionError::NoTransition { state, event }),
        }
    }

    fn send(&mut self, event: Event, advance: &mut Advance) -> Result<(), TransitionError> {
        let (to, effects) = step(self.state, event, &self.context)?;
        if event == Event::CompletionRetry {
            self.context.count_retry();
        }
        if to == State::AwaitLlm {
            self.context.begin_question();
        }
        advance.records.push(TransitionRecord::of(self.state, event, to, &self.context));
        advance.effects.extend(effects);
        self.state = to;
        Ok(())
    }
}
