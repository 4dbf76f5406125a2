//! Why there is no completion.

use std::time::Duration;

use talon_llm::route::Money;
use talon_proto::model;
use tonic::{Code, Status};

/// Why there is no completion. The texts are for the plugin and its author; what only the operator may know is in
/// the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RefusalError {
    #[error("{0}")]
    Invalid(String),
    #[error("{requested:?} is not granted to this plugin: name one of {granted}, or none for the first")]
    UnknownModel { requested: String, granted: String },
    #[error(
        "the operator has taken back this plugin's models: restart the plugin, or grant some under `models`"
    )]
    TakenBack,
    #[error(
        "no call of this plugin with that id is in flight for a turn, and the plugin has no budget of its own: pass the id of the \
         call that causes it, or have the operator set models.own_budget"
    )]
    NoCall,
    #[error(
        "this call has made its {most} completions, the most that models.max_calls grants: answer with what there is"
    )]
    TooManyCalls { most: u32 },
    #[error(
        "this plugin has made its {most} completions of today, the most that models.own_budget grants: try after midnight UTC"
    )]
    TooManyToday { most: u32 },
    #[error(
        "${left} of this plugin's ${budget} of today are left (models.own_budget), and this could cost ${most}: ask with fewer \
         max_tokens, or try after midnight UTC"
    )]
    OwnBudget { budget: Money, left: Money, most: Money },
    #[error("the turn has spent its budget of ${budget}: answer with what there is")]
    TurnBudget { budget: Money },
    #[error("the budget of the session or of the day is used up: answer with what there is")]
    SharedBudget,
    #[error("{most} requests of this plugin are the most at once: wait for some to be answered")]
    Busy { most: usize },
    #[error("no model answered, and the agent's log says why: try later, or answer without")]
    NoModel,
    #[error("it took longer than {0:?}: ask for less at once, or try later")]
    TimedOut(Duration),
    #[error("the call that it was for, or its turn, has ended")]
    CallEnded,
    #[error("the agent is ending: try again in a moment")]
    Ending,
    #[error("the agent's database cannot say what this plugin has spent: try later")]
    Unknown,
}

impl RefusalError {
    /// The word for programs, and gRPC's.
    fn reason(&self) -> (&'static str, Code) {
        match self {
            Self::Invalid(_) => ("invalid", Code::InvalidArgument),
            Self::UnknownModel { .. } | Self::TakenBack => ("unknown_model", Code::NotFound),
            Self::NoCall => ("no_call", Code::FailedPrecondition),
            Self::TooManyCalls { .. } | Self::TooManyToday { .. } => {
                ("too_many_calls", Code::ResourceExhausted)
            }
            Self::OwnBudget { .. } | Self::TurnBudget { .. } | Self::SharedBudget => {
                ("over_budget", Code::ResourceExhausted)
            }
            Self::Busy { .. } => ("busy", Code::ResourceExhausted),
            Self::NoModel => ("no_model", Code::Unavailable),
            Self::TimedOut(_) => ("timed_out", Code::DeadlineExceeded),
            Self::CallEnded => ("cancelled", Code::Cancelled),
            Self::Ending | Self::Unknown => ("unavailable", Code::Unavailable),
        }
    }
}

impl RefusalError {
    /// The word for programs.
    pub(super) fn word(&self) -> &'static str {
        self.reason().0
    }
}

impl From<RefusalError> for Status {
    fn from(error: RefusalError) -> Self {
        let (reason, code) = error.reason();
        model::Refusal { reason: reason.to_owned() }.into_status(code, error.to_string())
    }
}
