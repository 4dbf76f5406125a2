//! Models and their providers.

use talon_agent_settings::ProviderKind;
use talon_llm::route::fallback::ProviderState as State;
use talon_llm::route::router::Outage;
use talon_llm::route::show::{ChainRow, ModelRow, chains, rows};
use talon_proto::agent::{ListModelsRequest, ListModelsResponse, Model, ModelChain, ProviderState};
use tokio::time::Instant;
use tonic::Status;

use super::client::Client;
use super::sampling::sampling_view;
use super::service::Service;
use crate::agent::Setup;

impl Service {
    pub(super) async fn list_models(
        &self,
        _client: &Client,
        _request: ListModelsRequest,
    ) -> Result<ListModelsResponse, Status> {
        let setup = self.agent.setup();
        let models = rows(&setup.environment.chain, Instant::now());
        Ok(ListModelsResponse {
            models: models.into_iter().map(model).collect(),
            providers: providers(&setup),
            chains: chains(&setup.environment.chain).into_iter().map(chain).collect(),
            embeddings: setup.environment.similarity.as_ref().map(|by| by.model()).unwrap_or_default(),
        })
    }
}

fn model(row: ModelRow) -> Model {
    let price = |price: &dyn std::fmt::Display| if row.free { String::new() } else { price.to_string() };
    let (state, why) = state_text(&row.provider);
    Model {
        id: row.model.to_string(),
        alias: row.alias.clone().unwrap_or_default(),
        tier: row.tier.to_string(),
        context_window: row.context_window,
        tools: row.tools,
        vision: row.vision,
        input_price: price(&row.input),
        output_price: price(&row.output),
        cached_input_price: price(&row.cached_input),
        free: row.free,
        weight: row.weight,
        estimate: row.typical_turn.to_string(),
        state,
        why,
        priority: row.priority,
        local: row.local,
        sampling: sampling_view(row.sampling),
        thinking: row.thinking.map(|level| level.word().to_owned()).unwrap_or_default(),
    }
}

fn chain(row: ChainRow) -> ModelChain {
    ModelChain {
        task: row.task.to_string(),
        complexity: row.complexity.to_string(),
        models: row.models.iter().map(ToString::to_string).collect(),
    }
}

/// The providers, in the order of their names.
pub(super) fn providers(setup: &Setup) -> Vec<ProviderState> {
    let each = setup.providers().map(|(name, kind, state)| {
        let (state, why) = state_text(&state);
        ProviderState {
            name: name.to_owned(),
            kind: kind.word().to_owned(),
            state,
            why,
            scripted: kind == ProviderKind::Scripted,
        }
    });
    each.collect()
}

/// 1 for an available provider, 0.5 for one that recovers, 0 for one that is out.
pub(super) fn up(state: &State) -> f64 {
    match state {
        State::Ready => 1.0,
        State::Recovering => 0.5,
        State::Out { .. } => 0.0,
    }
}

/// The state as a word, with its reason.
fn state_text(state: &State) -> (String, String) {
    let (word, why) = match state {
        State::Ready => ("ready", String::new()),
        State::Recovering => ("ready", "it failed and is recovering: it is asked last".to_owned()),
        State::Out { outage } => {
            let why = outage.to_string();
            match outage {
                Outage::NotSetUp { .. } => ("not_set_up", why),
                Outage::Failing { .. } => ("out", why),
                Outage::RateLimited { .. } | Outage::NoCredit { .. } => ("resting", why),
            }
        }
    };
    (word.to_owned(), why)
}
