//! The health of providers: their breakers, and rests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::{Instant, timeout};

use super::event::{Event, EventObserver};
use crate::model::{ErrorClass, ProviderError};
use crate::provider::Provider;
use crate::route::breaker::{BreakerSettings, BreakerState, Change, CircuitBreaker, Permit, Verdict};
use crate::route::catalog::ModelRef;
use crate::route::retry;
use crate::route::router::{Availability, Outage};

/// The state of a provider, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ProviderState {
    /// It is asked.
    Ready,
    /// It failed and is recovering: it is asked last.
    Recovering,
    /// It is not asked.
    Out {
        /// The reason.
        #[serde(flatten)]
        outage: Outage,
    },
}

impl From<Availability> for ProviderState {
    fn from(standing: Availability) -> Self {
        match standing {
            Availability::Ready => Self::Ready,
            Availability::Recovering => Self::Recovering,
            Availability::Out(outage) => Self::Out { outage },
        }
    }
}

/// Shared by all requests, and kept when the configuration changes.
pub(super) struct Health {
    state: Mutex<State>,
    settings: BreakerSettings,
    observer: Arc<dyn EventObserver>,
}

/// Both maps are bounded by the catalog, since only attempts create entries.
#[derive(Default)]
struct State {
    breakers: BTreeMap<String, CircuitBreaker>,
    /// By provider and model; without a model, all of the provider's.
    rests: BTreeMap<(String, Option<String>), Rest>,
}

#[derive(Clone, Copy)]
struct Rest {
    until: Instant,
    class: ErrorClass,
}

impl Health {
    pub(super) fn new(settings: BreakerSettings, watch: Arc<dyn EventObserver>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), settings, observer: watch })
    }

    fn with<T>(&self, step: impl FnOnce(&mut State) -> T) -> T {
        step(&mut self.state.lock())
    }

    /// Runs a step of a provider's breaker. A change is reported afterwards, without the lock.
    fn step<T>(&self, provider: &str, step: impl FnOnce(&mut CircuitBreaker) -> T) -> T {
        let (result, from, to) = self.with(|state| {
            if !state.breakers.contains_key(provider) {
                state.breakers.insert(provider.to_owned(), CircuitBreaker::new(self.settings.into()));
            }
            let breaker = state.breakers.get_mut(provider).expect("it was just inserted if it was missing");
            let from = breaker.state();
            let result = step(breaker);
            (result, from, breaker.state())
        });
        if from != to {
            self.observer.on_event(&Event::Breaker { provider, change: Change { from, to } });
        }
        result
    }

    pub(super) fn availability(&self, model: &ModelRef, now: Instant) -> Availability {
        self.with(|state| {
            let ModelRef { provider, name } = model;
            let of_provider = state.rest(provider, None, now);
            state.breaker_availability(
                provider,
                now,
                of_provider.or_else(|| state.rest(provider, Some(name), now)),
            )
        })
    }

    pub(super) fn provider(&self, provider: &str, now: Instant) -> Availability {
        self.with(|state| state.breaker_availability(provider, now, state.rest(provider, None, now)))
    }

    /// Admits a request.
    pub(super) fn admit(self: &Arc<Self>, provider: &str, now: Instant) -> Option<BreakerPermit> {
        self.step(provider, |breaker| breaker.admit(now)).ok().map(|admitted| self.permit(provider, admitted))
    }

    fn permit(self: &Arc<Self>, provider: &str, admitted: Permit) -> BreakerPermit {
        BreakerPermit {
            health: self.clone(),
            provider: provider.to_owned(),
            admitted,
            verdict: Verdict::Inconclusive,
        }
    }

    /// Lets a model, or all models of a provider, rest.
    pub(super) fn rest(&self, provider: &str, model: Option<&str>, class: ErrorClass, time: Duration) {
        let until = Instant::now() + time;
        self.with(|state| {
            let now = Instant::now();
            state.rests.retain(|_, rest| rest.until > now);
            let key = (provider.to_owned(), model.map(str::to_owned));
            let rest = state.rests.entry(key).or_insert(Rest { until, class });
            // Two requests may get different times; the longer one counts.
            if rest.until < until {
                *rest = Rest { until, class };
            }
        });
        self.observer.on_event(&Event::Rests { provider, model, class, time });
    }

    /// Forgets limits and missing credit.
    pub(super) fn forget_rests(&self) {
        self.with(|state| state.rests.clear());
    }

    /// When the next probe is due.
    pub(super) fn next_probe(&self, providers: &BTreeMap<String, Arc<dyn Provider>>) -> Option<Instant> {
        self.with(|state| {
            let configured = state.breakers.iter().filter(|(name, _)| providers.contains_key(*name));
            configured.filter_map(|(_, breaker)| breaker.next_trial()).min()
        })
    }

    /// A probe of a provider, if one is due.
    pub(super) fn probe(
        self: &Arc<Self>,
        provider: &Arc<dyn Provider>,
        now: Instant,
        timeout: Duration,
    ) -> Option<Probe> {
        let name = provider.name();
        // A provider that never failed has no breaker yet, and needs none.
        if !self.with(|state| state.breakers.contains_key(name)) {
            return None;
        }
        let admitted = self.step(name, |breaker| breaker.admit_trial(now))?;
        Some(Probe { ticket: self.permit(name, admitted), provider: provider.clone(), timeout })
    }
}

impl State {
    fn rest(&self, provider: &str, model: Option<&str>, now: Instant) -> Option<Outage> {
        if self.rests.is_empty() {
            return None;
        }
        let rest = self.rests.get(&(provider.to_owned(), model.map(str::to_owned)))?;
        let retry_in = rest.until.saturating_duration_since(now);
        (!retry_in.is_zero()).then_some(match rest.class {
            ErrorClass::Billing => Outage::NoCredit { retry_in },
            _ => Outage::RateLimited { retry_in },
        })
    }

    fn breaker_availability(&self, provider: &str, now: Instant, rest: Option<Outage>) -> Availability {
        if let Some(outage) = rest {
            return Availability::Out(outage);
        }
        match self.breakers.get(provider) {
            Some(breaker) if breaker.state() != BreakerState::Closed => {
                let retry_in = breaker.retry_in(now);
                if retry_in.is_zero() {
                    Availability::Recovering
                } else {
                    Availability::Out(Outage::Failing { retry_in })
                }
            }
            _ => Availability::Ready,
        }
    }
}

/// An admitted request or probe. Reports its result when it is dropped; without one, it was abandoned.
pub(super) struct BreakerPermit {
    health: Arc<Health>,
    provider: String,
    admitted: Permit,
    verdict: Verdict,
}

impl BreakerPermit {
    /// Whether it was admitted as a trial.
    pub(super) fn is_trial(&self) -> bool {
        self.admitted.is_trial()
    }

    /// Reports the result.
    pub(super) fn settle(mut self, verdict: Verdict) {
        self.verdict = verdict;
    }
}

impl Drop for BreakerPermit {
    fn drop(&mut self) {
        let (admitted, verdict) = (self.admitted, self.verdict);
        self.health.step(&self.provider, |breaker| breaker.settle(admitted, verdict, Instant::now()));
    }
}

/// A due probe. If it is dropped without being run, it says nothing, and another is due soon.
#[must_use]
pub struct Probe {
    ticket: BreakerPermit,
    provider: Arc<dyn Provider>,
    timeout: Duration,
}

impl Probe {
    /// The provider.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.ticket.provider
    }

    /// Probes the provider, and reports to its breaker. No model is asked, so it is free.
    pub async fn run(self) {
        let said = match timeout(self.timeout, self.provider.probe()).await {
            Ok(said) => said.map_err(|error: ProviderError| error.class),
            Err(_) => Err(ErrorClass::Timeout),
        };
        let verdict = match said {
            Ok(()) => Verdict::Healthy,
            Err(class) if retry::policy(class).counts => Verdict::Failed,
            Err(_) => Verdict::Inconclusive,
        };
        let failed = said.err();
        self.ticket.health.observer.on_event(&Event::Probed { provider: &self.ticket.provider, failed });
        self.ticket.settle(verdict);
    }
}
