//! The specification of a turn, and the environment in which it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use talon_arguments::Arguments;
use talon_guard::Sanitizer;
use talon_llm::model::{Thinking, Usage};
use talon_llm::route::Task;
use talon_llm::route::fallback::{Attempt, Chain};
use talon_llm::route::router::Pins;
use tokio_util::sync::CancellationToken;

use super::{AllowedTools, BuiltinTools, Caller, Clock, Host, Listener, Recall};
use crate::answer::Schema;
use crate::budget::Budgets;
use crate::context::{ContextPlan, Stats};
use crate::journal::{Journal, UnfinishedTurn};
use crate::prompt::Prompt;

/// The environment of turns. It changes only with the configuration; a turn keeps the one it started with.
#[derive(Clone)]
pub struct TurnEnvironment {
    /// The models.
    pub chain: Arc<Chain>,
    /// The plugins.
    pub host: Arc<dyn Host>,
    /// The agent's built-in tools.
    pub builtin_tools: Vec<Arc<dyn BuiltinTools>>,
    /// Memory beyond a session.
    pub recall: Arc<dyn Recall>,
    /// Approves calls.
    pub approver: Arc<dyn CallApprover>,
    /// Neutralizes text.
    pub sanitizer: Arc<Sanitizer>,
}

/// The specification of a turn.
#[derive(Clone)]
pub struct TurnSpec {
    /// Its session, number and user.
    pub caller: Caller,
    /// The request.
    pub request: String,
    /// Its limits.
    pub budgets: Budgets,
    /// How the model's window is divided.
    pub plan: ContextPlan,
    /// The system prompt; memories are added to it.
    pub prompt: Prompt,
    /// The kind of task by which its questions are routed.
    pub task: Task,
    /// Models that the request or session selects.
    pub pins: Pins,
    /// The model that the operator names for summaries; a pin is stronger.
    pub summaries: Option<String>,
    /// How long the models think.
    pub thinking: Thinking,
    /// The schema that its answer has to fit.
    pub schema: Option<Arc<Schema>>,
    /// Restricts what may be called: "plugin.action" or "plugin.*"; empty for everything.
    pub within: Vec<String>,
    /// The operator's lists for the caller, in addition to `within`, which the client sets.
    pub allowed: AllowedTools,
    /// Whether calls are forbidden.
    pub no_tools: bool,
    /// Where it is stored; `None` for a sub-agent.
    pub journal: Option<Arc<dyn Journal>>,
    /// Receives its chunks.
    pub listener: Arc<dyn Listener>,
    /// Cancels it.
    pub cancel: CancellationToken,
    /// The interrupted turn to resume ([`crate::journal::unfinished`]), with the request and options that the
    /// journal has. `within` and `no_tools` restrict it further.
    pub resumes: Option<UnfinishedTurn>,
    /// The clock of the outer turn, for a sub-agent ([`super::BuiltinCall::clock`]).
    pub outer: Option<Clock>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// The answer; or the error word, and a sentence.
    pub outcome: Result<String, (String, String)>,
    /// The partial answer, if there is no whole one.
    pub partial: Option<String>,
    /// The tokens of all questions.
    pub usage: Usage,
    /// The total cost in picodollars.
    pub cost_pico_usd: u64,
    /// The duration in milliseconds.
    pub duration_ms: u64,
    /// The number of questions to the model.
    pub iterations: u32,
    /// The number of calls made.
    pub tool_calls: u32,
    /// The attempts of all questions since the turn started or was resumed: the latest 64.
    pub attempts: Vec<Attempt>,
    /// The model that answered last, as provider/name.
    pub model: Option<String>,
    /// Every model that saw the turn's text, with those of summaries and sub-agents.
    pub models: Vec<String>,
    /// The composition of the last question.
    pub stats: Option<Stats>,
}

/// Runs turns.
#[async_trait]
pub trait TurnRunner: Send + Sync {
    /// Runs a turn to its end. A failure is a [`TurnEnd`], too. The last chunk is the `done` or `error`; the
    /// caller, who knows the listeners, sends `started`.
    ///
    /// Dropping the future leaves the turn interrupted, to be resumed later ([`TurnSpec::resumes`]).
    async fn run(&self, environment: &TurnEnvironment, spec: TurnSpec) -> TurnEnd;
}

/// Whether a call may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    /// It may.
    Yes,
    /// It may not, with the text for the model: `denied by user`, and the reason.
    No(String),
}

/// Approves calls, if necessary by asking a person.
#[async_trait]
pub trait CallApprover: Send + Sync {
    /// Whether this call may be made. Waits for a person's decision where the policy requires one, and
    /// notifies the listener. `json` has the same arguments with their types. `destructive` and `read_only` are what the action declares.
    #[expect(
        clippy::too_many_arguments,
        reason = "a call and all that policy looks at; it is made in one place"
    )]
    async fn confirm(
        &self,
        caller: &Caller,
        call_id: &str,
        plugin: &str,
        action: &str,
        args: &BTreeMap<String, String>,
        json: &Arguments,
        read_only: bool,
        destructive: Option<bool>,
        listener: &Arc<dyn Listener>,
    ) -> Confirmation;

    /// The turn is over: its parked calls are cancelled, since nothing would make them any more. Not called
    /// when the agent itself ends, so that parked calls survive a restart.
    async fn turn_ended(&self, _caller: &Caller) {}
}
