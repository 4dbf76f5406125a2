//! What was spent.

use std::collections::BTreeMap;

use talon_llm::route::Money;
use talon_llm::route::cost::Day;
use talon_llm::route::cost::UsageTotals;
use talon_proto::agent::{
    Cost, GetCostsRequest, GetCostsResponse, ListCostsRequest, ListCostsResponse, NamedCost,
};
use talon_store::Timestamp;
use tonic::Status;

use super::client::Client;
use super::service::Service;
use crate::costs::{CostTotals, today};
use crate::error_status::store_error_status;

/// How many days are looked at, unless the request says otherwise, and at most: a quarter of a year, as many reads.
const DEFAULT_DAYS: u32 = 30;
const MAX_DAYS: u32 = 90;

impl Service {
    /// What the latest days cost, by day or by model.
    pub(super) async fn list_costs(
        &self,
        client: &Client,
        request: ListCostsRequest,
    ) -> Result<ListCostsResponse, Status> {
        client.require_operator("to see what all sessions cost together")?;
        let days = if request.days == 0 { DEFAULT_DAYS } else { request.days.min(MAX_DAYS) };
        let by_day = match request.by.as_str() {
            "day" => true,
            "model" => false,
            _ => return Err(Status::invalid_argument("by is none: write day or model")),
        };
        let last = today();
        let (mut rows, mut models) = (Vec::new(), BTreeMap::<String, UsageTotals>::new());
        for back in (0..u64::from(days)).rev() {
            let day = Day(last.0.saturating_sub(back));
            let spent = self.agent.costs.day_totals(day).await.map_err(|error| store_error_status(&error))?;
            if by_day {
                rows.push(NamedCost { name: date(day), cost: Some(cost(&spent.total())) });
            }
            for (model, tally) in spent.models() {
                models.entry(model.to_string()).or_default().merge(tally);
            }
        }
        if !by_day {
            rows = named(models);
            rows.sort_by_key(|row| std::cmp::Reverse(row.cost.map_or(0, |cost| cost.cost_pico_usd)));
        }
        Ok(ListCostsResponse { costs: rows })
    }

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

/// A day as a date, in UTC.
fn date(day: Day) -> String {
    const MILLIS: u64 = 24 * 60 * 60 * 1000;
    let millis = i64::try_from(day.0.saturating_mul(MILLIS)).unwrap_or(i64::MAX);
    Timestamp::from_millis(millis).to_string().chars().take("2026-11-27".len()).collect()
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
