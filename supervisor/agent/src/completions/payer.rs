//! Who pays for a completion: the turn of a call that is in flight, or the plugin itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use talon_agent_settings::PICOS_PER_MICRO;
use talon_llm::route::Money;
use talon_llm::route::router::Pins;
use tokio_util::sync::CancellationToken;

use super::grant::{AUTO, Grant};
use super::plugin::PluginModels;
use super::refusal::RefusalError;
use crate::costs::{Costs, own_session, today};
use crate::plugin_calls::{ModelUse, PluginCall, PluginCalls};

/// Who pays.
pub(super) enum Payer {
    /// The turn of a call.
    Turn(Arc<PluginCall>),
    /// The plugin's own budget.
    Own(OwnPayer),
}

/// A completion of a plugin without a call of a turn.
pub(super) struct OwnPayer {
    plugin: Arc<PluginModels>,
    session: String,
    local_only: bool,
}

impl Drop for OwnPayer {
    fn drop(&mut self) {
        self.plugin.own_running.fetch_sub(1, Ordering::Relaxed);
    }
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
            return match call.count_completion(grant.max_calls) {
                true => Ok(Self::Turn(call)),
                false => Err(RefusalError::TooManyCalls { most: grant.max_calls }),
            };
        }
        let Some(budget) = &grant.own_budget else { return Err(RefusalError::NoCall) };
        let running = plugin.own_running.fetch_add(1, Ordering::Relaxed);
        let day = today();
        let session = own_session(&plugin.name, day);
        let own = OwnPayer { plugin: Arc::clone(plugin), session, local_only };
        let spent = costs.own_totals(&plugin.name, day).await.map_err(|error| {
            tracing::warn!(
                target: "agent", plugin = plugin.name, error = talon_error_chain::error_chain(&error),
                "a plugin's own budget cannot be read"
            );
            RefusalError::Unknown
        })?;
        let spent = spent.total();
        let made = spent.answers.saturating_add(spent.failures);
        if made.saturating_add(u64::try_from(running).unwrap_or(u64::MAX)) >= budget.calls_per_day.into() {
            return Err(RefusalError::TooManyToday { most: budget.calls_per_day });
        }
        let most = Money::from_picodollars(u128::from(budget.micro_usd_per_day) * PICOS_PER_MICRO);
        // A budget of nothing is for models that cost nothing.
        if spent.cost >= most && spent.cost > Money::ZERO {
            return Err(RefusalError::OwnBudget { budget: most });
        }
        Ok(Self::Own(own))
    }

    /// Whether there is money left. Asked when the completion has its place.
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

    /// Cancelled when nobody needs the answer any more.
    pub(super) fn ended(&self) -> CancellationToken {
        match self {
            Self::Turn(call) => call.ended().clone(),
            Self::Own(_) => CancellationToken::new(),
        }
    }

    /// Adds to the account of the turn. The plugin's own is kept by [`Costs`].
    pub(super) fn charge(&self, used: &ModelUse) {
        if let Self::Turn(call) = self {
            call.turn().add(used);
        }
    }
}
