//! Where the loop can be, and what can happen to it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Makes an enum of words: each variant has one, which is what logs, metrics, clients and the diagram show.
macro_rules! words {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$inner])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// All of them, in the order of the documentation.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its word.
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
    /// Where the loop is.
    State {
        /// What the turn needs is gathered: session, memory, tools.
        Init = "init",
        /// A model was asked.
        AwaitLlm = "await_llm",
        /// It answered; what kind of answer is it?
        EvaluateResponse = "evaluate_response",
        /// What it called is running.
        ProcessTools = "process_tools",
        /// What came of that is counted.
        UpdateBudgets = "update_budgets",
        /// It called nothing: is this the answer that was asked for?
        HandleCompletion = "handle_completion",
        /// There is an answer. Terminal.
        Finalize = "finalize",
        /// There will be none, or a part of one. Terminal.
        TerminateError = "terminate_error",
    }
}

words! {
    /// What happens to the loop.
    Event {
        /// All that the turn needs is there.
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
        /// One is.
        BudgetExceeded = "budget_exceeded",
        /// The answer is not what was asked for, and the model may try again.
        CompletionRetry = "completion_retry",
        /// The answer is what was asked for.
        CompletionSuccess = "completion_success",
        /// Something that the turn cannot go on without did not work.
        Failure = "failure",
        /// The model wants to ask the person something. Reserved.
        RequestClarification = "request_clarification",
    }
}

impl State {
    /// Whether the turn is over.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Finalize | Self::TerminateError)
    }
}

impl Event {
    /// Whether the name is only kept for later.
    #[must_use]
    pub fn is_reserved(self) -> bool {
        self == Self::RequestClarification
    }
}
