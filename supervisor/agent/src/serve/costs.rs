//! What was spent.

use std::collections::BTreeMap;

use talon_llm::route::Money;
use talon_llm::route::cost::Tally;
use talon_proto::agent::{Cost, GetCostsRequest, GetCostsResponse, NamedCost};
use tonic::Status;

use super::client::Client;
use super::failure::failed;
use super::service::Service;
use crate::costs::{Spent, today};

impl Service {
    pub(super) async fn get_costs(
        &self,
        client: &Client,
        request: GetCostsRequest,
    ) -> Result<GetCostsResponse, Status> {
        let of_all = request.session_id.is_empty();
        if of_all {
            client.has_to_operate("to see what all sessions cost together")?;
        }
        let session = if of_all {
            None
        } else {
            let session = self.session(client, &request.session_id).await?.id.to_string();
            Some(self.agent.costs.of_session(&session).await.map_err(|error| failed(&error))?)
        };
        let today = if client.operates() {
            Some(self.agent.costs.of_day(today()).await.map_err(|error| failed(&error))?)
        } else {
            None
        };
        let setup = self.agent.setup();
        let budget = setup.settings.models.budget;
        let nothing = Spent::default();
        let shown = session.as_ref().or(today.as_ref()).unwrap_or(&nothing);
        let models = shown.models().iter().map(|(model, tally)| (model.to_string(), *tally)).collect();
        Ok(GetCostsResponse {
            by_provider: named(shown.providers()),
            by_model: named(models),
            session: session.map(|spent| cost(&spent.total())),
            today: today.map(|spent| cost(&spent.total())),
            session_budget_pico_usd: budget.per_session.map(pico),
            day_budget_pico_usd: budget.per_day.map(pico),
        })
    }
}

fn named(tallies: BTreeMap<String, Tally>) -> Vec<NamedCost> {
    tallies.into_iter().map(|(name, tally)| NamedCost { name, cost: Some(cost(&tally)) }).collect()
}

fn cost(tally: &Tally) -> Cost {
    Cost {
        answers: tally.answers,
        failures: tally.failures,
        input_tokens: tally.input_tokens,
        output_tokens: tally.output_tokens,
        cost_pico_usd: pico(tally.cost),
        estimated_pico_usd: pico(tally.estimated_cost),
    }
}

/// The wire format: up to 18 million dollars.
pub(super) fn pico(money: Money) -> u64 {
    u64::try_from(money.picodollars()).unwrap_or(u64::MAX)
}
