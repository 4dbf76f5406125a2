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

/// One way from a state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// Where it begins.
    pub from: State,
    /// What sets it off.
    pub event: Event,
    /// What has to hold.
    pub guard: Guard,
    /// Where it ends.
    pub to: State,
    /// What is to be done then, in this order.
    pub deeds: &'static [Deed],
}

const fn on(from: State, event: Event, guard: Guard, to: State, deeds: &'static [Deed]) -> Transition {
    Transition { from, event, guard, to, deeds }
}

/// What a failure leaves to do, wherever it happens: nothing of the turn may run on after its end.
const GIVE_UP: &[Deed] = &[CancelRunning, Store, TellEnd];

/// All of them. From each state, an event leads to one place at most.
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
