//! What happens in a chain, for logs, metrics and whoever keeps the costs.

use std::sync::Arc;
use std::time::Duration;

use crate::model::ErrorClass;
use crate::route::breaker::Change;
use crate::route::catalog::ModelRef;
use crate::route::complexity::Judgement;
use crate::route::cost::{Charge, OverBudget};
use crate::route::router::{Candidate, Route};
use crate::route::task::Task;

use super::attempt::Attempt;

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request was routed.
    Routed {
        /// Whose.
        session: &'a str,
        /// What is asked for.
        task: Task,
        /// How hard it was found to be; without points if the caller said so.
        judgement: &'a Judgement,
        /// Where it goes.
        route: &'a Route,
    },
    /// An attempt is over.
    Attempt {
        /// Whose.
        session: &'a str,
        /// What came of it.
        attempt: &'a Attempt,
    },
    /// It is asked again at the same model.
    Retry {
        /// Which.
        model: &'a ModelRef,
        /// From 1.
        retry: u32,
        /// After this time.
        wait: Duration,
        /// Because of this.
        class: ErrorClass,
    },
    /// Another model is asked.
    FellBack {
        /// Who failed.
        from: &'a ModelRef,
        /// Who is asked instead.
        to: &'a Candidate,
        /// Because of this.
        class: ErrorClass,
    },
    /// Pieces were taken back.
    Withdrawn {
        /// Whose.
        model: &'a ModelRef,
        /// Their characters.
        chars: u64,
    },
    /// Something was spent, or an attempt failed that cost nothing: to be kept where a restart does not lose it.
    Charged {
        /// Whose.
        session: &'a str,
        /// Which model.
        model: &'a ModelRef,
        /// What.
        charge: &'a Charge,
        /// Whether there is an answer for it.
        answered: bool,
    },
    /// A request was not asked, since it would go beyond a budget.
    OverBudget {
        /// Whose.
        session: &'a str,
        /// Which limit, and by how much.
        over: &'a OverBudget,
    },
    /// A model, or with `None` all of a provider's, is left alone for a while.
    Rests {
        /// Whose.
        provider: &'a str,
        /// Which.
        model: Option<&'a str>,
        /// Because of this.
        class: ErrorClass,
        /// For so long.
        time: Duration,
    },
    /// A provider's breaker changed its state.
    Breaker {
        /// Whose.
        provider: &'a str,
        /// From what to what.
        change: Change,
    },
    /// A probe is over.
    Probed {
        /// Whom.
        provider: &'a str,
        /// What it said; `None` if it is well.
        failed: Option<ErrorClass>,
    },
}

/// Sees what happens. Is called between two steps of a request: must not block, and must not ask the chain anything.
pub trait Watch: Send + Sync {
    /// Something happened.
    fn seen(&self, event: &Event<'_>);
}

/// Looks away.
impl Watch for () {
    fn seen(&self, _: &Event<'_>) {}
}

/// Several, in their order: a log, the metrics, and who keeps the costs.
impl Watch for Vec<Arc<dyn Watch>> {
    fn seen(&self, event: &Event<'_>) {
        self.iter().for_each(|watch| watch.seen(event));
    }
}

impl<F: Fn(&Event<'_>) + Send + Sync> Watch for F {
    fn seen(&self, event: &Event<'_>) {
        self(event);
    }
}
