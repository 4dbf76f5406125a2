//! What there is, as data: the rows of `talon model list`.

use serde::Serialize;
use talon_agent_settings::{Sampling, Thinking};
use tokio::time::Instant;

use super::catalog::ModelRef;
use super::cost::{Day, estimate};
use super::fallback::{Chain, ChainRequest, ProviderState};
use super::requirements::Requirements;
use super::router::Pins;
use super::task::{Complexity, Task, Tier};
use crate::model::Request;
use crate::route::{Money, Price};

/// A typical turn, by which models are compared: what the founding documents give to the context of a call,
/// 6,000 tokens, and an ordinary answer.
pub const TYPICAL_TURN: Requirements = Requirements {
    tools: false,
    vision: false,
    input_tokens: 6000,
    output_tokens: Task::Chat.expected_output_tokens(),
};

/// One model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelRow {
    /// Its provider and name.
    pub model: ModelRef,
    /// What it may be called for short.
    pub alias: Option<String>,
    /// Its tier.
    pub tier: Tier,
    /// Tokens of question and answer together.
    pub context_window: u64,
    /// Tokens of an answer.
    pub max_output_tokens: Option<u32>,
    /// It calls tools.
    pub tools: bool,
    /// It looks at pictures.
    pub vision: bool,
    /// How it chooses its words, as its entry says.
    pub sampling: Sampling,
    /// How much it thinks, as its entry says.
    pub thinking: Option<Thinking>,
    /// It costs nothing.
    pub free: bool,
    /// Dollars for a million tokens in.
    pub input: Price,
    /// Of those from the provider's cache.
    pub cached_input: Price,
    /// Dollars for a million tokens out.
    pub output: Price,
    /// What [`TYPICAL_TURN`] costs.
    pub typical_turn: Money,
    /// Of several that cost the same, the heaviest is asked first.
    pub weight: u32,
    /// Its place in the chain before its cost.
    pub priority: u32,
    /// Whether its provider is on this machine.
    pub local: bool,
    /// Whether it can be asked now.
    pub provider: ProviderState,
}

/// Whom a kind of request asks, one after the other, as things are now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainRow {
    /// The kind of task.
    pub task: Task,
    /// How hard it is.
    pub complexity: Complexity,
    /// The models; the first one is the primary. Empty if none can be asked.
    pub models: Vec<ModelRef>,
}

/// The chains of all kinds of requests of which each has its own.
#[must_use]
pub fn chains(chain: &Chain) -> Vec<ChainRow> {
    let kinds = [
        (Task::Chat, Complexity::Simple),
        (Task::Chat, Complexity::Moderate),
        (Task::Chat, Complexity::Complex),
        (Task::Orchestration, Complexity::Moderate),
        (Task::Subagent, Complexity::Simple),
        (Task::Summarization, Complexity::Simple),
    ];
    let models = |task, complexity| {
        let request = Request { max_output_tokens: Some(1), ..Request::default() };
        let ask = ChainRequest {
            request: &request,
            task,
            complexity: Some(complexity),
            input_tokens: TYPICAL_TURN.input_tokens,
            vision: false,
            pins: &Pins::default(),
            session: "",
            plugin: None,
            account: None,
            day: Day::default(),
            deadline: None,
        };
        let routed = chain.route(&ask).map(|(_, route)| route.candidates).unwrap_or_default();
        routed.into_iter().map(|candidate| candidate.model).collect()
    };
    kinds.map(|(task, complexity)| ChainRow { task, complexity, models: models(task, complexity) }).into()
}

/// All models: tier by tier, within one as the router takes them if all can do what is asked.
#[must_use]
pub fn rows(chain: &Chain, now: Instant) -> Vec<ModelRow> {
    let mut rows: Vec<ModelRow> =
        chain.catalog().entries().iter().map(|entry| row(chain, entry, now)).collect();
    rows.sort_by_key(|row| (row.tier, row.priority, row.typical_turn, u32::MAX - row.weight));
    rows
}

fn row(chain: &Chain, entry: &super::catalog::CatalogEntry, now: Instant) -> ModelRow {
    let model = &entry.model;
    let prices = model.prices();
    ModelRow {
        model: entry.id.clone(),
        alias: model.alias.clone(),
        tier: model.tier,
        context_window: model.context_window,
        max_output_tokens: model.max_output_tokens,
        tools: model.tools,
        vision: model.vision,
        sampling: model.sampling(),
        thinking: model.thinking,
        free: prices == super::catalog::Cost::default(),
        input: prices.input,
        cached_input: prices.cached_input.unwrap_or(prices.input),
        output: prices.output,
        typical_turn: estimate(model, TYPICAL_TURN).cost,
        weight: model.weight,
        priority: chain.routing().priority(entry),
        local: chain.routing().local.contains(&entry.id.provider),
        provider: chain.model_state(&entry.id, now),
    }
}
