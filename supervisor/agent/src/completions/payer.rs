//! Who pays for a completion: the turn of a call that is in flight, or the plugin itself.

use std::fmt;
use std::sync::Arc;

use talon_agent_settings::PICOS_PER_MICRO;
use talon_llm::route::Money;
use talon_llm::route::catalog::ModelRef;
use talon_llm::route::cost::{Account, AccountError, Charge};
use talon_llm::route::router::Pins;
use talon_proto::agent::OwnBudget;
use tokio_util::sync::CancellationToken;

use super::grant::{AUTO, Grant};
use super::plugin::PluginModels;
use super::refusal::RefusalError;
use crate::costs::{Costs, own_session, today};
use crate::plugin_calls::{CallCompletion, ModelUse, PluginCalls};
use crate::traces::SpanContext;

/// Who pays.
pub(super) enum Payer {
    /// The turn of a call.
    Turn(CallCompletion),
    /// The plugin's own budget.
    Own(OwnPayer),
}

/// A completion of a plugin without a call of a turn.
pub(super) struct OwnPayer {
    plugin: Arc<PluginModels>,
    budget: OwnBudget,
    session: String,
    local_only: bool,
}

impl Payer {
    /// The call that the plugin names, if it is one of its own that is in flight for a turn; otherwise the plugin, if it has a
    /// budget. `local_only` is the operator's rule for everything.
    pub(super) async fn find(
        plugin: &Arc<PluginModels>,
        grant: &Grant,
        call_id: &str,
        calls: &PluginCalls,
        costs: &Costs,
        local_only: bool,
    ) -> Result<Self, RefusalError> {
        if let Some(call) = calls.find(&plugin.name, call_id) {
            return match call.count(grant.max_calls) {
                true => Ok(Self::Turn(call)),
                false => Err(RefusalError::TooManyCalls { most: grant.max_calls }),
            };
        }
        let Some(budget) = grant.own_budget else { return Err(RefusalError::NoCall) };
        let day = today();
        if !plugin.own.is_open(day) {
            let spent = costs.own_totals(&plugin.name, day).await.map_err(|error| {
                tracing::warn!(
                    target: "agent", plugin = plugin.name, error = talon_error_chain::error_chain(&error),
                    "a plugin's own budget cannot be read"
                );
                RefusalError::Unknown
            })?;
            plugin.own.open(day, &spent.total());
        }
        let session = own_session(&plugin.name, day);
        Ok(Self::Own(OwnPayer { plugin: Arc::clone(plugin), budget, session, local_only }))
    }

    /// Whether there is money left. Asked when the completion has its place. A plugin's own budget is asked at each attempt.
    pub(super) fn check_budget(&self) -> Result<(), RefusalError> {
        let Self::Turn(call) = self else { return Ok(()) };
        match call.turn().exhausted_budget() {
            Some(micro_usd) => {
                let budget = Money::from_picodollars(u128::from(micro_usd) * PICOS_PER_MICRO);
                Err(RefusalError::TurnBudget { budget })
            }
            None => Ok(()),
        }
    }

    /// Which models may answer: a pin of the turn is stronger than what the plugin names.
    pub(super) fn pins(&self, alias: &str) -> Pins {
        let named = (alias != AUTO).then(|| alias.to_owned());
        match self {
            Self::Turn(call) => call.turn().pins().or_model(named.as_ref()),
            Self::Own(own) => Pins { request: named, local_only: own.local_only, ..Pins::default() },
        }
    }

    /// The session for totals and budgets.
    pub(super) fn session(&self) -> &str {
        match self {
            Self::Turn(call) => call.turn().session(),
            Self::Own(own) => &own.session,
        }
    }

    /// The span of the call that it is for.
    pub(super) fn trace(&self) -> Option<SpanContext> {
        match self {
            Self::Turn(call) => call.trace(),
            Self::Own(_) => None,
        }
    }

    /// Cancelled when nobody needs the answer any more.
    pub(super) fn ended(&self) -> CancellationToken {
        match self {
            Self::Turn(call) => call.ended().clone(),
            Self::Own(_) => CancellationToken::new(),
        }
    }
}

impl fmt::Debug for Payer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Payer").field(&self.session()).finish()
    }
}

/// Told of each attempt as it ends, also of one that is cancelled.
impl Account for Payer {
    fn reserve(&self, most: Money) -> Result<(), AccountError> {
        match self {
            Self::Turn(_) => Ok(()),
            Self::Own(own) => own.plugin.own.reserve(own.budget, most),
        }
    }

    fn settle(&self, most: Money, model: &ModelRef, charge: &Charge) {
        match self {
            Self::Turn(call) => call.turn().add(&ModelUse {
                pico_usd: charge.cost.picodollars(),
                usage: charge.usage,
                models: [model.to_string()].into(),
            }),
            Self::Own(own) => own.plugin.own.settle(most, charge.cost),
        }
    }
}
