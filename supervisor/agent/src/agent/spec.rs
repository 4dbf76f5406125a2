//! Builds a turn's specification from the configuration, the session, and the request.

use std::sync::Arc;

use talon_agent_settings::{Sampling, Settings, Thinking, TurnKeys};
use talon_llm::model::Image;
use talon_llm::route::Task;
use talon_llm::route::router::Pins;
use talon_store::Session;
use talon_trace_context::TraceParent;

use super::limits::budgets;
use super::session_metadata::{LOCAL_ONLY, sampling_of, tools_of};
use super::setup::Setup;
use crate::answer::Schema;
use crate::budget::Budgets;
use crate::context::ContextPlan;
use crate::driver::{AllowedTools, Caller, ClientSide, Listener, MessageOrigin, TurnSpec};
use crate::journal::{Journal, UnfinishedTurn};
use crate::media::Attachment;
use crate::plan::SessionPlan;
use crate::prompt::{Note, Prompt, Verbosity, today};
use crate::tools::{PatternIntersection, intersect};
use crate::turns::RunningTurn;
use crate::workspace::REFRESH_TIMEOUT;

/// A client's request for a turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct TurnRequest {
    /// The message.
    pub(crate) text: String,
    /// Where it comes from.
    pub(crate) origin: MessageOrigin,
    /// Whether it goes on although nobody follows it, and by itself after a restart.
    pub(crate) detached: bool,
    /// The images that belong to it; their bytes are stored.
    pub(crate) images: Vec<Image>,
    /// Other files that came with it; their bytes are stored.
    pub(crate) attachments: Vec<Attachment>,
    /// The model, by provider/name or alias.
    pub(crate) model: Option<String>,
    /// How long the model thinks.
    pub(crate) thinking: Option<Thinking>,
    /// How it chooses its words.
    pub(crate) sampling: Sampling,
    /// How detailed the answer is.
    pub(crate) verbosity: Option<Verbosity>,
    /// The schema that the answer has to fit.
    pub(crate) schema: Option<Arc<Schema>>,
    /// What may be called; empty for what the session allows.
    pub(crate) tools: Vec<String>,
    /// Whether calls are forbidden.
    pub(crate) no_tools: bool,
    /// Whether only models on this machine may see it.
    pub(crate) local_only: bool,
    /// Whether a person follows the turn and can be asked back.
    pub(crate) can_answer: bool,
    /// Whether a person approves a plan first.
    pub(crate) plans_first: bool,
    /// The client's position in a trace.
    pub(crate) trace: Option<TraceParent>,
    /// The number that the turn has to get; with another, it is not begun.
    pub(crate) turn: Option<u64>,
    /// The most that it may cost, in millionths of a dollar, instead of `agent.turn.cost`.
    pub(crate) micro_usd: Option<u64>,
    /// The client's own tools and conversation.
    pub(crate) client: Option<Box<ClientSide>>,
    /// The client's instructions for this turn.
    pub(crate) instructions: String,
}

impl TurnRequest {
    /// Whether it is a text alone, which can stand beside others in one turn.
    pub(crate) fn may_be_merged(&self) -> bool {
        let Self {
            text: _,
            origin,
            detached: _,
            images,
            attachments,
            model,
            thinking,
            sampling,
            verbosity,
            schema,
            tools,
            no_tools,
            local_only,
            can_answer: _,
            plans_first,
            trace: _,
            turn,
            micro_usd,
            client,
            instructions,
        } = self;
        let asks_otherwise = model.is_some()
            || thinking.is_some()
            || *sampling != Sampling::default()
            || verbosity.is_some()
            || schema.is_some()
            || !tools.is_empty()
            || *no_tools
            || *local_only
            || *plans_first
            || turn.is_some()
            || micro_usd.is_some()
            || client.is_some()
            || !instructions.is_empty();
        images.is_empty() && attachments.is_empty() && origin.sender_name.is_empty() && !asks_otherwise
    }
}

/// Where a turn keeps what is of its session.
pub(super) struct SessionPlace {
    pub(super) journal: Option<Arc<dyn Journal>>,
    pub(super) plan: Option<Arc<dyn SessionPlan>>,
    pub(super) listener: Arc<dyn Listener>,
}

/// Builds the specification.
pub(super) async fn spec(
    setup: &Setup,
    session: &Session,
    running: &RunningTurn,
    request: TurnRequest,
    place: SessionPlace,
    resumes: Option<UnfinishedTurn>,
) -> TurnSpec {
    let settings = &setup.settings;
    let requested = (!request.tools.is_empty()).then_some(&request.tools[..]);
    let (within, nothing) = match intersect(&tools_of(session), requested) {
        PatternIntersection::Patterns(patterns) => (patterns, false),
        PatternIntersection::Nothing => (Vec::new(), true),
    };
    let of_before = resumes.as_ref().map(|unfinished| unfinished.options.member.clone());
    let member = of_before.unwrap_or_else(|| request.origin.member.clone());
    let wanted = session.overrides.thinking.as_deref().and_then(thinking);
    TurnSpec {
        caller: Caller {
            session: session.id.to_string(),
            turn: running.turn(),
            sender: session.sender.clone(),
            member: member.clone(),
            channel: session.channel.clone(),
            subagent: String::new(),
            correlation_id: running.correlation_id.clone(),
        },
        request: request.text,
        origin: request.origin,
        images: request.images,
        attachments: request.attachments,
        budgets: turn_budgets(&settings.agent.turn, request.micro_usd),
        plan: ContextPlan::from(&settings.agent.context),
        prompt: prompt(setup)
            .await
            .verbosity(
                request
                    .verbosity
                    .or_else(|| session.overrides.verbosity.as_deref().and_then(Verbosity::parse)),
            )
            .instructions(request.instructions),
        task: Task::Chat,
        pins: Pins {
            local_only: request.local_only || local_only(settings, session),
            request: request.model,
            session: session.overrides.model.clone(),
            active: session.active_model.clone(),
        },
        summaries: settings.models.summaries.clone(),
        thinking: request.thinking.or(wanted).unwrap_or(settings.models.thinking),
        is_general_thinking: request.thinking.or(wanted).is_none(),
        sampling: request.sampling.or(sampling_of(session)),
        schema: request.schema,
        no_tools: request.no_tools || nothing,
        can_answer: request.can_answer,
        client: request.client,
        session_plan: place.plan,
        plans_first: request.plans_first,
        parallel: settings.agent.turn.parallel,
        within,
        allowed: AllowedTools::new(&settings.agent.allow, &session.sender, &session.channel)
            .and_of(&settings.agent.allow, &member),
        journal: place.journal,
        listener: place.listener,
        cancel: running.cancel.clone(),
        resumes,
        trace: setup.environment.tracer.begin(request.trace),
        outer: None,
    }
}

fn turn_budgets(keys: &TurnKeys, micro_usd: Option<u64>) -> Budgets {
    let budgets = budgets(keys);
    Budgets { micro_usd: micro_usd.or(budgets.micro_usd), ..budgets }
}

/// Whether only models on this machine may see what a session says.
pub(crate) fn local_only(settings: &Settings, session: &Session) -> bool {
    settings.models.local_only || session.metadata.contains_key(LOCAL_ONLY)
}

/// The system prompt. Plugins' notes are requested only if one is trusted.
async fn prompt(setup: &Setup) -> Prompt {
    let workspace = setup.workspace.current_within(REFRESH_TIMEOUT).await;
    let prompt = Prompt::new(setup.settings.orchestrator.rules.clone(), workspace).today(today());
    let trusted = &setup.settings.agent.trusted_plugins;
    if trusted.is_empty() {
        return prompt;
    }
    // The turn requests the actions again, and reports the error then.
    let plugins = setup.environment.host.tools().await.unwrap_or_default();
    let notes = plugins
        .into_iter()
        .filter(|(name, said)| trusted.contains(name) && !said.system_prompt_addition.trim().is_empty());
    prompt.trusted_notes(
        notes.map(|(plugin, said)| Note { plugin, text: said.system_prompt_addition }).collect(),
    )
}

/// Parses how long a model thinks.
pub(crate) fn thinking(word: &str) -> Option<Thinking> {
    match word {
        "off" => Some(Thinking::Off),
        "low" => Some(Thinking::Low),
        "medium" => Some(Thinking::Medium),
        "high" => Some(Thinking::High),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_for_thinking_are_those_of_the_configuration() {
        for level in [Thinking::Off, Thinking::Low, Thinking::Medium, Thinking::High] {
            let word = serde_json::to_value(level).expect("a word");
            assert_eq!(thinking(word.as_str().expect("a text")), Some(level));
        }
        assert_eq!(thinking("Off"), None);
    }
}
