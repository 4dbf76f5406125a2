//! All transitions.

use super::EffectKind::{
    AppendAnswer, AppendResults, AskModel, AskPerson, CancelRunning, CheckAnswer, Feedback, PrepareContext,
    RunTools, Store, TellDone, TellEnd, TellHandedOver, Warn,
};
use super::Event::{
    BudgetExceeded, BudgetOk, ClarificationReceived, CompletionRetry, CompletionSuccess, Failure, HandOver,
    LlmResponse, ResponseNoTool, ResponseWithTools, StartLoop, ToolsExecuted,
};
use super::State::{
    AwaitLlm, EvaluateResponse, Finalize, HandleCompletion, Init, ProcessTools, TerminateError, UpdateBudgets,
};
use super::{EffectKind, Event, Guard, State};

/// A transition between two states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The state in which it applies.
    pub from: State,
    /// The event that triggers it.
    pub event: Event,
    /// The condition.
    pub guard: Guard,
    /// The new state.
    pub to: State,
    /// The effects, in this order.
    pub effects: &'static [EffectKind],
}

const fn transition(
    from: State,
    event: Event,
    guard: Guard,
    to: State,
    deeds: &'static [EffectKind],
) -> Transition {
    Transition { from, event, guard, to, effects: deeds }
}

/// The effects of a failure in any state: nothing of the turn may run after its end.
const GIVE_UP: &[EffectKind] = &[CancelRunning, Store, TellEnd];

/// All transitions. In each state, an event has at most one.
#[rustfmt::skip]
pub const TRANSITIONS: &[Transition] = &[
    transition(Init,             StartLoop,         Guard::IterationsLeft,     AwaitLlm,         &[PrepareContext, AskModel]),
    transition(AwaitLlm,         LlmResponse,       Guard::Answered,           EvaluateResponse, &[AppendAnswer]),
    transition(EvaluateResponse, ResponseNoTool,    Guard::CallsNothing,       HandleCompletion, &[CheckAnswer]),
    transition(EvaluateResponse, ResponseWithTools, Guard::CallsTools,         ProcessTools,     &[RunTools]),
    transition(EvaluateResponse, Event::RequestClarification, Guard::AsksPerson, State::RequestClarification, &[AskPerson]),
    transition(State::RequestClarification, ClarificationReceived, Guard::ResultsComplete, AwaitLlm, &[AppendResults, Warn, PrepareContext, AskModel]),
    transition(ProcessTools,     ToolsExecuted,     Guard::ResultsComplete,    UpdateBudgets,    &[AppendResults]),
    transition(UpdateBudgets,    BudgetOk,          Guard::WithinBudgets,      AwaitLlm,         &[Warn, PrepareContext, AskModel]),
    transition(UpdateBudgets,    BudgetExceeded,    Guard::BudgetExceeded,     TerminateError,   &[Store, TellEnd]),
    transition(UpdateBudgets,    HandOver,          Guard::HandsOver,          Finalize,         &[Store, TellHandedOver]),
    transition(HandleCompletion, CompletionRetry,   Guard::InvalidRetriesLeft, AwaitLlm,         &[Feedback, PrepareContext, AskModel]),
    transition(HandleCompletion, CompletionSuccess, Guard::Accepted,           Finalize,         &[Store, TellDone]),
    transition(Init,             Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
    transition(AwaitLlm,         Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
    transition(EvaluateResponse, Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
    transition(ProcessTools,     Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
    transition(State::RequestClarification, Failure, Guard::FailureKnown,      TerminateError,   GIVE_UP),
    transition(UpdateBudgets,    Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
    transition(HandleCompletion, Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
];

pub(super) fn find(from: State, event: Event) -> Option<&'static Transition> {
    TRANSITIONS.iter().find(|transition| transition.from == from && transition.event == event)
}
