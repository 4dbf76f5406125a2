//! The chain: providers, catalog, health and costs together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::event::{Event, EventObserver};
use super::health::{Health, Probe, ProviderState};
use crate::model::Request;
use crate::provider::Provider;
use crate::route::breaker::BreakerSettings;
use crate::route::catalog::{Catalog, ModelRef};
use crate::route::complexity::{self, ComplexityEstimate};
use crate::route::cost::{Account, Charge, Day, Ledgers, OverBudgetError, Reservation};
use crate::route::requirements::Requirements;
use crate::route::retry::RetrySettings;
use crate::route::router::{self, Availability, Outage, Pins, Route, RouteError, RouteQuery, Routing};
use crate::route::task::{Complexity, Task};

/// The time for a whole request: a provider's longest answer; or half for a model that hangs, with its
/// retries, and half for the next one.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(600);

/// The longest time without a piece of an answer. More than twice a provider's own limit for the first piece
/// (`timeouts.first_token`), since it only covers providers that do not keep their limits.
pub const DEFAULT_SILENCE: Duration = Duration::from_secs(300);

/// The time for a probe.
pub const DEFAULT_PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainSettings {
    /// The time for all attempts and waits of a request; retries end at half of it if another model can be
    /// asked. Default [`DEFAULT_PATIENCE`]. An attempt that it ends says nothing about the provider, so it
    /// should be more than the silence.
    pub patience: Duration,
    /// An attempt without a piece of an answer for this long is a timeout. Providers have shorter limits and
    /// see more of the stream, so this should be above all of theirs. Default [`DEFAULT_SILENCE`].
    pub silence: Duration,
    /// The time for a probe. Default [`DEFAULT_PROBE_TIMEOUT`].
    pub probe_timeout: Duration,
    /// When requests are retried.
    pub retry: RetrySettings,
    /// When a provider is not asked.
    pub breaker: BreakerSettings,
}

impl Default for ChainSettings {
    fn default() -> Self {
        Self {
            patience: DEFAULT_PATIENCE,
            silence: DEFAULT_SILENCE,
            probe_timeout: DEFAULT_PROBE_TIMEOUT,
            retry: RetrySettings::default(),
            breaker: BreakerSettings::default(),
        }
    }
}

/// A request with its routing information.
#[derive(Debug, Clone, Copy)]
pub struct ChainRequest<'a> {
    /// The request. The chain sets its model, and limits the answer to what the model can produce.
    pub request: &'a Request,
    /// The kind of task.
    pub task: Task,
    /// The complexity, if the caller knows better than [`complexity::judge`].
    pub complexity: Option<Complexity>,
    /// Tokens of the request, as counted or estimated by the caller.
    pub input_tokens: u64,
    /// Whether it has pictures.
    pub vision: bool,
    /// Models that the request or session selects.
    pub pins: &'a Pins,
    /// The session, for totals and budgets.
    pub session: &'a str,
    /// The plugin that asks, for its totals.
    pub plugin: Option<&'a str>,
    /// What pays beside the ledger.
    pub account: Option<&'a dyn Account>,
    /// Today, for the budget of the day.
    pub day: Day,
    /// When the answer is of no use any more, if that is before the chain's patience ends.
    pub deadline: Option<Instant>,
}

impl ChainRequest<'_> {
    pub(super) fn deadline(&self, started: Instant, patience: Duration) -> Instant {
        let most = started + patience;
        self.deadline.map_or(most, |deadline| deadline.min(most))
    }

    fn requirements(&self) -> Requirements {
        let expected = self.task.expected_output_tokens();
        Requirements {
            tools: !self.request.tools.is_empty(),
            vision: self.vision,
            input_tokens: self.input_tokens,
            output_tokens: self.request.max_output_tokens.map_or(expected, |most| expected.min(most.into())),
        }
    }
}

/// Asks models. Cheap to share behind an [`Arc`]; any number of requests may be in flight.
pub struct Chain {
    pub(super) catalog: Arc<Catalog>,
    routing: Routing,
    providers: BTreeMap<String, Arc<dyn Provider>>,
    /// What to do about providers that cannot be used.
    not_set_up: BTreeMap<String, String>,
    pub(super) health: Arc<Health>,
    pub(super) ledgers: Ledgers,
    pub(super) settings: ChainSettings,
    pub(super) observer: Arc<dyn EventObserver>,
}

impl Chain {
    /// A chain whose providers are all available and whose totals are zero.
    #[must_use]
    pub fn new(
        catalog: Arc<Catalog>,
        providers: impl IntoIterator<Item = Arc<dyn Provider>>,
        ledgers: Ledgers,
        settings: ChainSettings,
        observer: Arc<dyn EventObserver>,
    ) -> Self {
        let health = Health::new(settings.breaker, observer.clone());
        Self {
            catalog,
            routing: Routing::default(),
            providers: by_name(providers),
            not_set_up: BTreeMap::new(),
            health,
            ledgers,
            settings,
            observer,
        }
    }

    /// The chain with another catalog and other providers, for a changed configuration. The breakers of
    /// remaining providers and the costs are kept; what was learned of their keys, limits and credit, is not,
    /// since the keys may be others.
    #[must_use]
    pub fn renewed(
        &self,
        catalog: Arc<Catalog>,
        providers: impl IntoIterator<Item = Arc<dyn Provider>>,
        ledgers: Ledgers,
        settings: ChainSettings,
    ) -> Self {
        self.health.forget_rests();
        Self {
            catalog,
            routing: Routing::default(),
            providers: by_name(providers),
            not_set_up: BTreeMap::new(),
            health: self.health.clone(),
            ledgers,
            settings,
            observer: self.observer.clone(),
        }
    }

    /// Whether any provider searches tools itself, so that requests should have the deferred ones.
    #[must_use]
    pub fn searches_tools(&self) -> bool {
        self.providers.values().any(|provider| provider.searches_tools())
    }

    /// Sets what the operator says about the order of models.
    #[must_use]
    pub fn with_routing(mut self, routing: Routing) -> Self {
        self.routing = routing;
        self
    }

    /// What the operator says about the order of models.
    #[must_use]
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// Marks a provider as not usable, for instance without a key, with what to do.
    #[must_use]
    pub fn without(mut self, provider: impl Into<String>, what_to_do: impl Into<String>) -> Self {
        self.not_set_up.insert(provider.into(), what_to_do.into());
        self
    }

    /// The models.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Charges what was asked of a model beside this chain, such as vectors, and tells the observer as of an answer.
    pub fn charge(&self, reservation: Reservation, session: &str, model: &ModelRef, charge: &Charge) {
        reservation.charge(model, charge, true);
        self.observer.on_event(&Event::Charged { session, plugin: None, model, charge, answered: true });
    }

    /// Tells the observer that something was not asked of a model beside this chain, since it would exceed a budget.
    pub fn refuse(&self, session: &str, over: &OverBudgetError) {
        self.observer.on_event(&Event::OverBudget { session, over });
    }

    /// The costs.
    #[must_use]
    pub fn ledgers(&self) -> &Ledgers {
        &self.ledgers
    }

    /// Whether any model that these pins permit calls tools; `true` as well if they permit none, which is
    /// reported as another error.
    #[must_use]
    pub fn calls_tools(&self, pins: &Pins) -> bool {
        router::calls_tools(&self.catalog, pins, &self.routing)
    }

    /// Where a request would go now. No model is asked.
    ///
    /// # Errors
    /// [`RouteError`]
    pub fn route(&self, ask: &ChainRequest<'_>) -> Result<(ComplexityEstimate, Route), RouteError> {
        let judgement = match ask.complexity {
            Some(complexity) => ComplexityEstimate { complexity, points: 0, signs: Vec::new() },
            None => complexity::judge(ask.request),
        };
        let question = RouteQuery {
            task: ask.task,
            complexity: judgement.complexity,
            needs: ask.requirements(),
            pins: ask.pins,
            routing: &self.routing,
        };
        let now = Instant::now();
        let route = router::route(&self.catalog, &question, |model| self.availability(model, now))?;
        Ok((judgement, route))
    }

    pub(super) fn provider(&self, name: &str) -> Option<&Arc<dyn Provider>> {
        self.providers.get(name)
    }

    pub(super) fn availability(&self, model: &ModelRef, now: Instant) -> Availability {
        self.not_set_up(&model.provider).unwrap_or_else(|| self.health.availability(model, now))
    }

    fn not_set_up(&self, provider: &str) -> Option<Availability> {
        let what = match (self.not_set_up.get(provider), self.providers.get(provider)) {
            (Some(what), _) => what.clone(),
            // Rejected keys stay rejected, so the provider counts as not set up.
            (None, Some(provider)) => provider.permanent_refusal()?,
            (None, None) => "configure it under models.providers".to_owned(),
        };
        Some(Availability::Out(Outage::NotSetUp { what }))
    }

    /// The state of a provider.
    #[must_use]
    pub fn provider_state(&self, provider: &str, now: Instant) -> ProviderState {
        self.not_set_up(provider).unwrap_or_else(|| self.health.provider(provider, now)).into()
    }

    /// The state of a model: that of its provider, or its own rest.
    #[must_use]
    pub fn model_state(&self, model: &ModelRef, now: Instant) -> ProviderState {
        self.availability(model, now).into()
    }

    /// The due probes. The owner runs each in a task; the chain has no tasks.
    pub fn due_probes(&self, now: Instant) -> Vec<Probe> {
        let probe = |provider| self.health.probe(provider, now, self.settings.probe_timeout);
        self.providers.values().filter_map(probe).collect()
    }

    /// When to check for due probes again; `None` while no provider is out. To be called again after each
    /// breaker event and each probe.
    #[must_use]
    pub fn next_probe(&self) -> Option<Instant> {
        self.health.next_probe(&self.providers)
    }
}

fn by_name(providers: impl IntoIterator<Item = Arc<dyn Provider>>) -> BTreeMap<String, Arc<dyn Provider>> {
    providers.into_iter().map(|provider| (provider.name().to_owned(), provider)).collect()
}
