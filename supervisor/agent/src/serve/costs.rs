//! What was spent.

use std::collections::BTreeMap;

use talon_llm::route::Money;
use talon_llm::route::cost::UsageTotals;
use talon_proto::agent::{Cost, GetCostsRequest, GetCostsResponse, NamedCost};
use tonic::Status;

use super::client::Client;
use super::service::Service;
use crate::costs::{CostTotals, today};
use crate::error_status::store_error_status;

impl Service {
    pub(super) async fn get_costs(
        &self,
        client: &Client,
        request: GetCostsRequest,
    ) -> Result<GetCostsResponse, Status> {
        let of_all = request.session_id.is_empty();
        if of_all {
            client.require_operator("to see what all sessions cost together")?;
        }
        let session = if of_all {
            None
        } else {
            let session = self.session(client, &request.session_id).await?.id.to_string();
            Some(
                self.agent
                    .costs
                    .session_totals(&session)
                    .await
                    .map_err(|error| store_error_status(&error))?,
            )
        };
        let today = if client.is_operator() {
            Some(self.agent.costs.day_totals(today()).await.map_err(|error| store_error_status(&error))?)
        } else {
            None
        };
        let by_plugin = match (&session, client.is_operator()) {
            (None, true) => self
                .agent
                .costs
                .plugins_of(crate::costs::today())
                .await
                .map_err(|error| store_error_status(&error))?,
            _ => BTreeMap::new(),
        };
        let by_plugin = by_plugin.into_iter().map(|(name, spent)| (name, spent.total())).collect();
        let setup = self.agent.setup();
        let budget = setup.settings.models.budget;
        let nothing = CostTotals::default();
        let shown = session.as_ref().or(today.as_ref()).unwrap_or(&nothing);
        let models = shown.models().iter().map(|(model, tally)| (model.to_string(), *tally)).collect();
        Ok(GetCostsResponse {
            by_plugin: named(by_plugin),
            by_provider: named(shown.providers()),
            by_model: named(models),
            session: session.map(|spent| cost(&spent.total())),
            today: today.map(|spent| cost(&spent.total())),
            session_budget_pico_usd: budget.per_session.map(pico),
            day_budget_pico_usd: budget.per_day.map(pico),
        })
    }
}

fn named(tallies: BTreeMap<String, UsageTotals>) -> Vec<NamedCost> {
    tallies.into_iter().map(|(name, tally)| NamedCost { name, cost: Some(cost(&tally)) }).collect()
}

fn cost(tally: &UsageTotals) -> Cost {
    Cost {
        answers: tally.answers,
        failures: tally.failures,
        input_tokens: tally.input_tokens,
        output_tokens: tally.output_tokens,
        cost_pico_usd: pico(tally.cost),
        estimated_pico_usd: pico(tally.estimated_cost),
        cached_input_tokens: tally.cached_input_tokens,
    }
}

/// The wire format: up to 18 million dollars.
pub(super) fn pico(money: Money) -> u64 {
    u64::try_from(money.picodollars()).unwrap_or(u64::MAX)
}
