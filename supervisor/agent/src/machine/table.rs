//! All transitions.

use super::Deed::{
    AppendAnswer, AppendResults, AskModel, CancelRunning, CheckAnswer, Feedback, PrepareContext, RunTools,
    Store, TellDone, TellEnd, Warn,
};
use super::Event::{
    BudgetExceeded, BudgetOk, CompletionRetry, CompletionSuccess, Failure, LlmResponse, ResponseNoTool,
    ResponseWithTools, StartLoop, ToolsExecuted,
};
use super::State::{
    AwaitLlm, EvaluateResponse, Finalize, HandleCompletion, Init, ProcessTools, TerminateError, UpdateBudgets,
};
use super::{Deed, Event, Guard, State};

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
    pub deeds: &'static [Deed],
}

const fn on(from: State, event: Event, guard: Guard, to: State, deeds: &'static [Deed]) -> Transition {
    Transition { from, event, guard, to, deeds }
}

/// The effects of a failure in any state: nothing of the turn may run after its end.
const GIVE_UP: &[Deed] = &[CancelRunning, Store, TellEnd];

/// All transitions. In each state, an event has at most one.
#[rustfmt::skip]
pub const TRANSITIONS: &[Transition] = &[
    on(Init,             StartLoop,         Guard::IterationsLeft,     AwaitLlm,         &[PrepareContext, AskModel]),
    on(AwaitLlm,         LlmResponse,       Guard::Answered,           EvaluateResponse, &[AppendAnswer]),
    on(EvaluateResponse, ResponseNoTool,    Guard::CallsNothing,       HandleCompletion, &[CheckAnswer]),
    on(EvaluateResponse, ResponseWithTools, Guard::CallsTools,         ProcessTools,     &[RunTools]),
    on(ProcessTools,     ToolsExecuted,     Guard::ResultsComplete,    UpdateBudgets,    &[AppendResults]),
    on(UpdateBudgets,    BudgetOk,          Guard::WithinBudgets,      AwaitLlm,         &[Warn, PrepareContext, AskModel]),
    on(UpdateBudgets,    BudgetExceeded,    Guard::BudgetExceeded,     TerminateError,   &[Store, TellEnd]),
    on(HandleCompletion, CompletionRetry,   Guard::InvalidRetriesLeft, AwaitLlm,         &[Feedback, PrepareContext, AskModel]),
    on(HandleCompletion, CompletionSuccess, Guard::Accepted,           Finalize,         &[Store, TellDone]),
    on(Init,             Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
    on(AwaitLlm,         Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
    on(EvaluateResponse, Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
    on(ProcessTools,     Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
    on(UpdateBudgets,    Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
    on(HandleCompletion, Failure,           Guard::FailureKnown,       TerminateError,   GIVE_UP),
];

pub(super) fn find(from: State, event: Event) -> Option<&'static Transition> {
    TRANSITIONS.iter().find(|transition| transition.from == from && transition.event == event)
}
