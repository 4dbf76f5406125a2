//! A chain over three providers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::provider::{Fault, Scripted};
use crate::model::{Message, Request};
use crate::provider::Provider;
use crate::route::catalog::{Catalog, CatalogKeys};
use crate::route::complexity::ComplexityEstimate;
use crate::route::cost::{Budget, Day, Ledgers};
use crate::route::fallback::{
    AnswerEvent, Answered, Chain, ChainRequest, ChainSettings, Event, EventObserver, ExhaustedError, Log,
};
use crate::route::retry;
use crate::route::router::Pins;
use crate::route::task::Task;

/// A provider keeps its own bounds, and these here do not: the founding 90 s for a call are the chain's to
/// keep.
pub(super) fn bounded() -> ChainSettings {
    ChainSettings { silence: Duration::from_secs(90), ..ChainSettings::default() }
}

pub(super) const TODAY: Day = Day(20_000);

/// The cheapest first: `first/a` is the primary, and has a dearer sister at the same provider.
const CATALOG: &str = "
first/a: { tier: cheap, context_window: 100000, max_output_tokens: 2000, cost: { input: 1, output: 10 } }
first/b: { tier: cheap, context_window: 100000, cost: { input: 2, output: 10 } }
second/a: { tier: cheap, context_window: 100000, cost: { input: 3, output: 10 } }
third/a: { tier: mid, context_window: 100000, cost: { input: 4, output: 10 } }
";

pub(super) struct Setting {
    pub(super) chain: Chain,
    pub(super) first: Arc<Scripted>,
    pub(super) second: Arc<Scripted>,
    pub(super) third: Arc<Scripted>,
    pub(super) request: Request,
    pub(super) pins: Pins,
    events: Arc<Mutex<Vec<String>>>,
}

impl Setting {
    /// The first fails as told, the others answer.
    pub(super) fn first(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self::all(faults, [], [])
    }

    pub(super) fn all(
        first: impl IntoIterator<Item = Fault>,
        second: impl IntoIterator<Item = Fault>,
        third: impl IntoIterator<Item = Fault>,
    ) -> Self {
        Self::with(first, second, third, bounded(), Budget::default())
    }

    pub(super) fn with(
        first: impl IntoIterator<Item = Fault>,
        second: impl IntoIterator<Item = Fault>,
        third: impl IntoIterator<Item = Fault>,
        settings: ChainSettings,
        budget: Budget,
    ) -> Self {
        let first = Arc::new(Scripted::new("first", first));
        let second = Arc::new(Scripted::new("second", second));
        let third = Arc::new(Scripted::new("third", third));
        let keys: CatalogKeys = serde_saphyr::from_str(CATALOG).expect("the keys of a catalog");
        let names: BTreeSet<String> = ["first", "second", "third"].map(str::to_owned).into();
        let catalog = Catalog::new(&keys, &names).expect("a good catalog");
        let providers: [Arc<dyn Provider>; 3] = [first.clone(), second.clone(), third.clone()];
        let events = Arc::new(Mutex::new(Vec::new()));
        let kept = events.clone();
        let watch = move |event: &Event<'_>| {
            kept.lock().extend(told(event));
        };
        let watch: Vec<Arc<dyn EventObserver>> = vec![Arc::new(Log), Arc::new(watch)];
        let chain = Chain::new(Arc::new(catalog), providers, Ledgers::new(budget), settings, Arc::new(watch));
        let request = Request {
            messages: vec![Message::User { text: "hello".to_owned() }],
            max_output_tokens: Some(100),
            ..Request::default()
        };
        Self { chain, first, second, third, request, pins: Pins::default(), events }
    }

    pub(super) fn question(&self) -> ChainRequest<'_> {
        ChainRequest {
            request: &self.request,
            task: Task::Chat,
            complexity: None,
            input_tokens: 1000,
            vision: false,
            pins: &self.pins,
            session: "s",
            plugin: None,
            account: None,
            day: TODAY,
            deadline: None,
        }
    }

    pub(super) async fn ask(&self) -> Result<Answered, ExhaustedError> {
        self.chain.ask(&self.question(), &mut |_: AnswerEvent| {}).await
    }

    /// Whose answer it was, and that there was one.
    pub(super) async fn answered_by(&self) -> String {
        self.ask().await.expect("an answer").model.to_string()
    }

    /// What happened since this was last asked.
    pub(super) fn events(&self) -> Vec<String> {
        std::mem::take(&mut *self.events.lock())
    }

    pub(super) fn times_asked(&self) -> [usize; 3] {
        [&self.first, &self.second, &self.third].map(|provider| provider.times_asked())
    }
}

fn told(event: &Event<'_>) -> Option<String> {
    Some(match event {
        Event::Routed { judgement: ComplexityEstimate { complexity, .. }, route, .. } => {
            format!("{complexity} to {}", route.candidates[0].model)
        }
        Event::Retry { model, retry, .. } => format!("retry {retry} of {model}"),
        Event::FellBack { from, to, class } => format!("{} {from} to {}", retry::word(*class), to.model),
        Event::Withdrawn { model, chars } => format!("withdrawn {chars} of {model}"),
        Event::Rests { provider, model, time, .. } => {
            format!("{provider}/{} rests {} s", model.unwrap_or("*"), time.as_secs())
        }
        Event::Breaker { provider, change } => format!("{provider} {:?} to {:?}", change.from, change.to),
        Event::Probed { provider, failed } => format!("probed {provider} {:?}", failed.map(retry::word)),
        Event::OverBudget { over, .. } => format!("over {:?}", over.limit),
        Event::Charged { model, charge, answered, .. } => {
            let about = if charge.estimated { "about " } else { "" };
            format!("{model} {about}${} {answered}", charge.cost)
        }
        Event::Attempt { .. } => return None,
    })
}
