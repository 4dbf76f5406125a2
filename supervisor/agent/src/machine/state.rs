//! The states and events of the loop.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Makes an enum whose variants have a fixed text, which logs, metrics, clients and the diagram show.
macro_rules! words {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$inner])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// All variants, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The text of the variant.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// The state of the loop.
    State {
        /// Session, memory and tools are loaded.
        Init = "init",
        /// A model is asked.
        AwaitLlm = "await_llm",
        /// The model answered; the kind of answer is determined.
        EvaluateResponse = "evaluate_response",
        /// The answer's calls run.
        ProcessTools = "process_tools",
        /// The model asked the person; the answer is waited for.
        RequestClarification = "request_clarification",
        /// The results are counted.
        UpdateBudgets = "update_budgets",
        /// The answer has no calls; it is checked.
        HandleCompletion = "handle_completion",
        /// There is an answer. Terminal.
        Finalize = "finalize",
        /// There is no answer, or a partial one. Terminal.
        TerminateError = "terminate_error",
    }
}

words! {
    /// An event of the loop.
    Event {
        /// Everything that the turn needs is loaded.
        StartLoop = "start_loop",
        /// The model answered.
        LlmResponse = "llm_response",
        /// Its answer calls no tool.
        ResponseNoTool = "response_no_tool",
        /// Its answer calls tools.
        ResponseWithTools = "response_with_tools",
        /// Each call has its result.
        ToolsExecuted = "tools_executed",
        /// No limit is reached.
        BudgetOk = "budget_ok",
        /// A limit is reached.
        BudgetExceeded = "budget_exceeded",
        /// The answer is invalid, and the model may try again.
        CompletionRetry = "completion_retry",
        /// The answer is valid.
        CompletionSuccess = "completion_success",
        /// Something failed without which the turn cannot continue.
        Failure = "failure",
        /// The model asks the person a question.
        RequestClarification = "request_clarification",
        /// The person answered, or does not want to.
        ClarificationReceived = "clarification_received",
        /// The client makes the answer's other calls.
        HandOver = "hand_over",
    }
}

impl State {
    /// Whether the turn is over.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Finalize | Self::TerminateError)
    }
}
