//! Events of a chain, for logs, metrics and the storage of costs.

use std::sync::Arc;
use std::time::Duration;

use crate::model::ErrorClass;
use crate::route::breaker::Change;
use crate::route::catalog::ModelRef;
use crate::route::complexity::ComplexityEstimate;
use crate::route::cost::{Charge, OverBudgetError};
use crate::route::router::{Candidate, Route};
use crate::route::task::Task;

use super::attempt::Attempt;

/// An event of a chain.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request was routed.
    Routed {
        /// The session.
        session: &'a str,
        /// The kind of task.
        task: Task,
        /// The complexity; without points if the caller set it.
        judgement: &'a ComplexityEstimate,
        /// The route.
        route: &'a Route,
    },
    /// An attempt is over.
    Attempt {
        /// The session.
        session: &'a str,
        /// The attempt.
        attempt: &'a Attempt,
        /// The time from the question to the first piece of an answer, if one came.
        first_piece: Option<Duration>,
    },
    /// The same model is asked again.
    Retry {
        /// The model.
        model: &'a ModelRef,
        /// The number of the retry, from 1.
        retry: u32,
        /// The wait before it.
        wait: Duration,
        /// The class of the failure.
        class: ErrorClass,
    },
    /// Another model is asked.
    FellBack {
        /// The model that failed.
        from: &'a ModelRef,
        /// The model that is asked instead.
        to: &'a Candidate,
        /// The class of the failure.
        class: ErrorClass,
    },
    /// Pieces were withdrawn.
    Withdrawn {
        /// The model that sent them.
        model: &'a ModelRef,
        /// Their characters.
        chars: u64,
    },
    /// An attempt was charged, or failed without cost: to be stored durably.
    Charged {
        /// The session.
        session: &'a str,
        /// The plugin that asked, if one did.
        plugin: Option<&'a str>,
        /// The model.
        model: &'a ModelRef,
        /// The charge.
        charge: &'a Charge,
        /// Whether the attempt has an answer.
        answered: bool,
    },
    /// A request was not sent, since it would exceed a budget.
    OverBudget {
        /// The session.
        session: &'a str,
        /// The limit, and the amounts.
        over: &'a OverBudgetError,
    },
    /// A model, or with `None` its whole provider, is not asked for a while.
    Rests {
        /// The provider.
        provider: &'a str,
        /// The model.
        model: Option<&'a str>,
        /// The class of the failure.
        class: ErrorClass,
        /// The duration.
        time: Duration,
    },
    /// A provider's breaker changed its state.
    Breaker {
        /// The provider.
        provider: &'a str,
        /// The old and the new state.
        change: Change,
    },
    /// A probe has ended.
    Probed {
        /// The provider.
        provider: &'a str,
        /// The error; `None` if the provider works.
        failed: Option<ErrorClass>,
    },
}

/// Observes the events of a chain. Called between two steps of a request: must not block, and must not call
/// the chain.
pub trait EventObserver: Send + Sync {
    /// Handles an event.
    fn on_event(&self, event: &Event<'_>);
}

/// Ignores everything.
impl EventObserver for () {
    fn on_event(&self, _: &Event<'_>) {}
}

/// Several observers, in order: a log, the metrics, the storage of costs.
impl EventObserver for Vec<Arc<dyn EventObserver>> {
    fn on_event(&self, event: &Event<'_>) {
        self.iter().for_each(|watch| watch.on_event(event));
    }
}

impl<F: Fn(&Event<'_>) + Send + Sync> EventObserver for F {
    fn on_event(&self, event: &Event<'_>) {
        self(event);
    }
}
