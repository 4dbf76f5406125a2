//! The conditions of transitions.

use super::state::words;
use crate::answer::AnswerVerdict;
use crate::budget::BudgetCheck;
use crate::loop_context::LoopContext;
use std::fmt;

use serde::{Deserialize, Serialize};

words! {
    /// A condition on the context. Its text is a clause that fits after "only if".
    Guard {
        /// The model may be asked once more.
        IterationsLeft = "iterations are left",
        /// The model's answer to the last question is there.
        Answered = "the model has answered",
        /// That answer calls nothing.
        CallsNothing = "the answer calls no tool",
        /// That answer calls something.
        CallsTools = "the answer calls tools",
        /// That answer is a question to the person, and one is allowed.
        AsksPerson = "the answer is a question to the person that may be asked",
        /// As many results as calls.
        ResultsComplete = "each call has its result",
        /// No limit is reached.
        WithinBudgets = "no limit is reached",
        /// One is.
        BudgetExceeded = "a limit is reached",
        /// The client makes calls of the answer.
        HandsOver = "the client makes calls of the answer",
        /// The answer is invalid, and both a retry and an iteration are left.
        InvalidRetriesLeft = "the answer does not fit and a retry is left",
        /// The answer is valid.
        Accepted = "the answer was accepted",
        /// The failure is recorded.
        FailureKnown = "it is known what failed",
    }
}

impl Guard {
    /// Whether it holds.
    #[must_use]
    pub fn holds(self, context: &LoopContext) -> bool {
        match self {
            Self::IterationsLeft => context.iterations_left() > 0,
            Self::Answered => context.answer().is_some(),
            Self::CallsNothing => context.answer().is_some_and(|answer| answer.calls.is_empty()),
            Self::CallsTools => context.answer().is_some_and(|answer| !answer.calls.is_empty()),
            Self::AsksPerson => context.asks_person(),
            Self::ResultsComplete => context
                .answer()
                .is_some_and(|answer| Some(answer.calls.len()) == context.results().map(<[_]>::len)),
            Self::WithinBudgets => matches!(context.check_budgets(), BudgetCheck::Within(_)),
            Self::BudgetExceeded => matches!(context.check_budgets(), BudgetCheck::Exceeded(_)),
            Self::HandsOver => context.hands_over(),
            Self::InvalidRetriesLeft => {
                matches!(context.verdict(), Some(AnswerVerdict::Invalid(_)))
                    && context.verdict_retries_left() > 0
                    && context.iterations_left() > 0
                    && context.exhausted_limit().is_none()
            }
            Self::Accepted => matches!(context.verdict(), Some(AnswerVerdict::Accepted(_))),
            Self::FailureKnown => context.failure().is_some(),
        }
    }
}
