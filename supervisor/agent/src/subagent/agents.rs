//! The sub-agents and their calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use talon_agent_settings::{ParallelCalls, SubAgentKeys, ToolPattern};
use talon_guard::{Answer, EnvelopeMode, Guard, GuardSettings, Outcome as GuardOutcome, Raw, Sanitizer};
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{SubagentResult, SubagentStart};
use talon_proto::plugin::PluginCapabilities;
use talon_store::Sessions;
use tokio::sync::Semaphore;

use super::definition::Definition;
use super::error::{ResultError, TaskError};
use super::outcome::SubAgentOutcome;
use super::{RUN, SUBAGENT, built_in, offer};
use crate::context::ContextPlan;
use crate::driver::{BuiltinCall, BuiltinTools, Caller, TurnEnvironment, TurnRunner};
use crate::tool_result::ToolResult;
use crate::tools::from_builtin;

/// The most sub-agents that run at once in the whole agent; others wait. Each is a separate conversation with
/// a provider, and providers limit those.
pub const MAX_AT_ONCE: usize = 8;
/// The most sub-agents that are defined; every question of the model carries a line about each.
const MAX_AGENTS: usize = 32;
/// The longest answer that a model gets. The loop truncates it further if necessary.
const MAX_ANSWER_BYTES: usize = 32 * 1024;
/// How much of a task is shown to clients.
const MAX_TASK_SHOWN_BYTES: usize = 500;

/// Returns the present environment of turns; `None` while there is none.
pub type EnvironmentSource = Arc<dyn Fn() -> Option<TurnEnvironment> + Send + Sync>;

/// What all sub-agents share.
#[derive(Debug, Clone)]
pub struct SubAgentContext {
    /// `orchestrator.rules`
    pub rules: Vec<String>,
    /// How the window is divided; the part of the system prompt is adapted to the role.
    pub plan: ContextPlan,
    /// `models.summaries`
    pub summaries: Option<String>,
    /// `agent.turn.parallel`
    pub parallel: ParallelCalls,
    /// `agent.allow.subagents`
    pub allow: BTreeMap<String, Vec<ToolPattern>>,
    /// Neutralizes text.
    pub sanitizer: Arc<Sanitizer>,
}

/// The agent's own plugin `subagent`.
pub struct SubAgents {
    pub(super) keys: SubAgentKeys,
    pub(super) context: SubAgentContext,
    pub(super) runner: Arc<dyn TurnRunner>,
    pub(super) environment: EnvironmentSource,
    definitions: BTreeMap<String, Definition>,
    guard: Guard,
    permits: Semaphore,
    /// Where tasks are stored; `None` where they are not.
    pub(super) sessions: Option<Arc<dyn Sessions>>,
}

impl SubAgents {
    /// The built-in sub-agents and the operator's, and the problems of those, each with what to do. An
    /// unusable one is left out.
    #[must_use]
    pub fn new(
        keys: &SubAgentKeys,
        runner: Arc<dyn TurnRunner>,
        environment: EnvironmentSource,
        context: SubAgentContext,
    ) -> (Self, Vec<String>) {
        let (mut definitions, mut problems) = (BTreeMap::new(), Vec::new());
        if keys.enabled {
            let built_in = built_in::all().map(|(name, entry)| (name.to_owned(), entry));
            let own = keys.agents.iter().map(|(name, entry)| (name.clone(), entry.clone()));
            for (name, entry) in built_in.into_iter().chain(own) {
                match Definition::new(&name, entry) {
                    Ok(definition) if definitions.len() < MAX_AGENTS || definitions.contains_key(&name) => {
                        definitions.insert(name, definition);
                    }
                    Ok(_) => problems.push(format!(
                        "agent.subagents.agents: there are more than {MAX_AGENTS}, so {name:?} is left out; remove some"
                    )),
                    Err(why) => problems.push(format!("agent.subagents.agents.{name}: {why}")),
                }
            }
        }
        let settings = GuardSettings {
            envelope: EnvelopeMode::Quoted,
            max_response_bytes: MAX_ANSWER_BYTES,
            max_structured_bytes: MAX_ANSWER_BYTES,
            ..GuardSettings::default()
        };
        let guard = Guard::with_sanitizer(Sanitizer::clone(&context.sanitizer), settings);
        let places = Semaphore::new(MAX_AT_ONCE);
        (
            Self {
                keys: keys.clone(),
                context,
                runner,
                environment,
                definitions,
                guard,
                permits: places,
                sessions: None,
            },
            problems,
        )
    }

    /// Stores tasks while they run, so that they go on after a kill.
    #[must_use]
    pub fn with_sessions(self, sessions: Arc<dyn Sessions>) -> Self {
        Self { sessions: Some(sessions), ..self }
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.keys().map(String::as_str)
    }

    async fn answer(&self, call: &BuiltinCall) -> Result<(SubAgentOutcome, String), TaskError> {
        if !call.caller.subagent.is_empty() {
            return Err(TaskError::Nested);
        }
        let unknown = || TaskError::Unknown { names: self.names().collect::<Vec<_>>().join(", ") };
        if call.action != RUN {
            return Err(TaskError::UnknownAction);
        }
        let (name, definition) = self.definitions.get_key_value(agent_of(call)).ok_or_else(unknown)?;
        let job = self.parse_task(call, definition)?;
        let _place = self.permits.acquire().await.map_err(|_| TaskError::Ending)?;
        call.listener.on_chunk(Kind::SubagentStart(SubagentStart {
            agent: name.clone(),
            task: Raw::from(job.task.as_str()).text().cut(MAX_TASK_SHOWN_BYTES).into_string(),
            call_id: call.call_id.clone(),
        }));
        let mut outcome = self.run(call, name, definition, job).await;
        // JSON of the same shape in which every string is neutralized.
        let json = match &outcome.result {
            Ok(result) => self.guard.json(result.to_string()).map(|(inert, _)| inert.into_string()),
            Err(_) => Some(String::new()),
        };
        let json = json.unwrap_or_else(|| {
            outcome.result = Err(ResultError::CannotBeShown);
            String::new()
        });
        call.listener.on_chunk(Kind::SubagentResult(SubagentResult {
            agent: name.clone(),
            call_id: call.call_id.clone(),
            result: json.clone(),
            error: outcome
                .result
                .as_ref()
                .err()
                .map(|error| Raw::from(error.to_string()).text().into_string())
                .unwrap_or_default(),
            tokens: outcome.tokens,
            cost_pico_usd: outcome.cost_pico_usd,
            duration_ms: outcome.duration_ms,
            models: outcome.models.clone(),
        }));
        Ok((outcome, json))
    }
}

#[async_trait]
impl BuiltinTools for SubAgents {
    fn capabilities(&self, caller: &Caller) -> Option<PluginCapabilities> {
        let is_offered = caller.subagent.is_empty() && !self.definitions.is_empty();
        is_offered.then(|| offer::capabilities(self.definitions.iter()))
    }

    fn resumes(&self, _action: &str) -> bool {
        self.sessions.is_some()
    }

    async fn call(&self, call: BuiltinCall) -> ToolResult {
        let no = |why: String| (Answer::from_host(GuardOutcome::ToolError, why), None);
        let mut originals = Vec::new();
        let (answer, said) = match self.answer(&call).await {
            Err(error) => no(error.to_string()),
            Ok((SubAgentOutcome { result: Err(why), .. }, _)) => {
                no(format!("{} gave no result: {why}", agent_of(&call)))
            }
            Ok((mut outcome, json)) => {
                originals = std::mem::take(&mut outcome.originals);
                // Neutralized again as JSON text: truncation may cut it anywhere, and must not produce an
                // instruction.
                let result = serde_json::from_str(&json).unwrap_or_default();
                (Answer::from_tool(outcome.to_json(agent_of(&call), &result).to_string()), Some(json))
            }
        };
        let mut result =
            from_builtin(self.guard.answer(&call.caller.session, SUBAGENT, &call.call_id, answer));
        result.provenance.originals = originals;
        if let Some(said) = said {
            // Duration and cost are no sign of progress.
            result.output = said;
        }
        result
    }
}

/// The name of the sub-agent that a call is for.
fn agent_of(call: &BuiltinCall) -> &str {
    call.args.get("agent").map(|name| name.trim()).unwrap_or_default()
}
