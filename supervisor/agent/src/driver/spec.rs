//! The specification of a turn, and the environment in which it runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use talon_agent_settings::ParallelCalls;
use talon_agent_settings::Sampling;
use talon_arguments::Arguments;
use talon_guard::Sanitizer;
use talon_llm::model::{Image, Thinking, Usage};
use talon_llm::route::Task;
use talon_llm::route::fallback::{Attempt, Chain};
use talon_llm::route::router::Pins;
use talon_sanitize::MarkedSpan;
use tokio_util::sync::CancellationToken;

use super::{
    AllowedTools, AttachmentSource, BuiltinTools, CallPosition, Caller, ClientSide, Clock, HandedOverCalls,
    Host, ImageSource, Listener, Recall, ToolSimilarity,
};
use crate::answer::Schema;
use crate::budget::Budgets;
use crate::context::{ContextPlan, Stats};
use crate::hooks::Hooks;
use crate::journal::{Journal, UnfinishedTurn};
use crate::media::Attachment;
use crate::plan::SessionPlan;
use crate::plugin_calls::PluginCalls;
use crate::prompt::Prompt;
use crate::question::Question;
use crate::tokens::Calibration;
use crate::traces::{SpanContext, Tracer};

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
    /// The bytes of images.
    pub images: Arc<dyn ImageSource>,
    /// The bytes of other files.
    pub attachments: Arc<dyn AttachmentSource>,
    /// What is known of how models count tokens.
    pub calibration: Arc<Calibration>,
    /// Records spans.
    pub tracer: Arc<Tracer>,
    /// Compares tools with queries by meaning, if there is a model for it.
    pub similarity: Option<Arc<dyn ToolSimilarity>>,
    /// Filters, request hooks and response hooks.
    pub hooks: Hooks,
    /// The calls of plugins that are in flight.
    pub plugin_calls: Arc<PluginCalls>,
}

/// Where a message comes from, as its client says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageOrigin {
    /// The client's own name of it; empty without one.
    pub client_id: String,
    /// The channel, if it is not the session's.
    pub channel: String,
    /// Who speaks, where several people share the session. Models see it as data.
    pub sender_name: String,
    /// Whose message it is, where several people share the session, as `agent.allow` names them; empty elsewhere.
    pub member: String,
    /// The names of other messages that are a part of it.
    pub merged: Vec<String>,
    /// What its client noted beside it, for itself.
    pub metadata: BTreeMap<String, String>,
}

/// The specification of a turn.
#[derive(Clone)]
pub struct TurnSpec {
    /// Its session, number and user.
    pub caller: Caller,
    /// The request.
    pub request: String,
    /// Where the request comes from.
    pub origin: MessageOrigin,
    /// The images that belong to the request.
    pub images: Vec<Image>,
    /// Other files that came with the request.
    pub attachments: Vec<Attachment>,
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
    /// Whether that is only the configuration's general level, so that a model's own is stronger.
    pub is_general_thinking: bool,
    /// How it chooses its words, and how long an answer may be, as far as session or request say so.
    pub sampling: Sampling,
    /// The schema that its answer has to fit.
    pub schema: Option<Arc<Schema>>,
    /// Restricts what may be called: "plugin.action" or "plugin.*"; empty for everything.
    pub within: Vec<String>,
    /// The operator's lists for the caller, in addition to `within`, which the client sets.
    pub allowed: AllowedTools,
    /// Whether calls are forbidden.
    pub no_tools: bool,
    /// What its client brings; `None` for a client without tools that has its conversation in a session.
    pub client: Option<Box<ClientSide>>,
    /// Whether a person follows the turn and can be asked back.
    pub can_answer: bool,
    /// The plan of its session; `None` for a turn without one.
    pub session_plan: Option<Arc<dyn SessionPlan>>,
    /// Whether a person approves a plan first: until then only calls that read are made.
    pub plans_first: bool,
    /// Which calls of one answer run concurrently.
    pub parallel: ParallelCalls,
    /// Where it is stored; `None` for a turn that does not go on after a kill.
    pub journal: Option<Arc<dyn Journal>>,
    /// Receives its chunks.
    pub listener: Arc<dyn Listener>,
    /// Cancels it.
    pub cancel: CancellationToken,
    /// The interrupted turn to resume ([`crate::journal::unfinished`]), with the request and options that the
    /// journal has. `within` and `no_tools` restrict it further.
    pub resumes: Option<UnfinishedTurn>,
    /// Its position in a trace, if it is part of one.
    pub trace: Option<SpanContext>,
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
    /// The originals of what a sub-agent's answer repeats of results.
    pub originals: Vec<MarkedSpan>,
    /// The calls that the client makes, if it ended with some.
    pub handed_over: Option<HandedOverCalls>,
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

/// A call for which [`CallApprover::confirm`] decides.
#[derive(Debug, Clone, Copy)]
pub struct CallToConfirm<'a> {
    /// The turn.
    pub caller: &'a Caller,
    /// The model's id of the call.
    pub call_id: &'a str,
    /// The plugin's name in the configuration.
    pub plugin: &'a str,
    /// The action.
    pub action: &'a str,
    /// The arguments on the wire.
    pub args: &'a BTreeMap<String, String>,
    /// The same arguments with their types.
    pub json: &'a Arguments,
    /// What the action declares.
    pub read_only: bool,
    /// What the action declares; `None` if it does not say.
    pub destructive: Option<bool>,
    /// Its place in the answer. People may decide about all calls of an answer at once, but an approval is
    /// used only when its call may begin.
    pub position: CallPosition<'a>,
}

/// What came of a question to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The answer; of a plugin's question one JSON object that fits its form.
    Answered(String),
    /// The person does not answer; with a reason, which may be empty.
    Declined(String),
    /// No answer came in time.
    Expired(Duration),
    /// The question was not asked, and why.
    NotAsked(String),
}

/// Approves calls, if necessary by asking a person.
#[async_trait]
pub trait CallApprover: Send + Sync {
    /// Whether this call may be made. Waits for a person's decision where the policy requires one, and
    /// notifies the listener.
    async fn confirm(&self, call: CallToConfirm<'_>, listener: &Arc<dyn Listener>) -> Confirmation;

    /// Asks the person a question of the model or a plugin, and waits for the answer. `call_id` is the model's id
    /// of the call by which it asks, or in which the plugin does.
    async fn ask_person(
        &self,
        caller: &Caller,
        call_id: &str,
        question: &Question,
        listener: &Arc<dyn Listener>,
    ) -> Reply;

    /// The turn is over: its parked calls are cancelled, since nothing would make them any more. Not called
    /// when the agent itself ends, so that parked calls survive a restart.
    async fn turn_ended(&self, _caller: &Caller) {}
}
