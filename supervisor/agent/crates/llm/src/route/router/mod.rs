//! Which models may answer a request, the best first. A pure function.
//!
//! 1. The task and its complexity give a tier ([`tier_for`]).
//! 2. Unsuitable models are skipped: without tools, without vision, with too small a window; and those that
//!    are out.
//! 3. The operator's default comes first where it applies ([`Routing`]). Within the tier the order is by
//!    priority, then by cost: the cheapest for this request first, by its estimate. Among equal costs the
//!    heavier comes first, among equal weights the order is by name.
//! 4. Models of other tiers follow, by [`Tier::ladder`].
//! 5. Models of a recovering provider come after all others: the provider is asked again when it has
//!    recovered, or if no other model is left.
//!
//! A request may name a tier in the place of a model ([`Tier::of_route`]): then the order begins with that tier, and the operator's default
//! does not come before it.
//!
//! A pin overrides all of this: it selects the one model that may answer. A pin of the request overrides one
//! of the session. A pinned model that is unsuitable is an error that says so, never another model.

mod error;
mod rejection;
mod routing;

use serde::{Deserialize, Serialize};

pub use self::error::RouteError;
pub use self::rejection::{Outage, RejectionReason, SkippedCandidate};
pub(super) use self::rejection::{WholeSeconds, reasons};
pub use self::routing::{DEFAULT_PRIORITY, Routing};
use super::catalog::{Catalog, CatalogEntry, ModelRef};
use super::cost::estimate;
use super::requirements::Requirements;
use super::task::{Complexity, Task, Tier, tier_for};
use crate::route::Money;

/// Models that are selected explicitly, by provider and name, alias, or name alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// By the request.
    pub request: Option<String>,
    /// By the session; the request's pin has priority.
    pub session: Option<String>,
    /// Only models of providers on this machine may see the text.
    #[serde(default)]
    pub local_only: bool,
    /// The model that answered last, as provider/name. It pins nothing: of several models that cost the same it is asked
    /// first, since it may have the session's beginning in its cache, or be loaded.
    #[serde(default)]
    pub active: Option<String>,
}

impl Pins {
    /// The same rules for a request that a turn causes, with the model that the operator names for such
    /// requests: a pin is stronger than that, and no rule is loosened.
    #[must_use]
    pub fn or_model(&self, model: Option<&String>) -> Self {
        match (&self.request, &self.session) {
            (None, None) => Self { request: model.cloned(), ..self.clone() },
            _ => self.clone(),
        }
    }
}

/// Whether a model's provider can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// It can be asked.
    Ready,
    /// It failed and is recovering: it is asked last.
    Recovering,
    /// It cannot be asked.
    Out(Outage),
}

/// The input of the router.
#[derive(Debug, Clone, Copy)]
pub struct RouteQuery<'a> {
    /// The kind of task.
    pub task: Task,
    /// The complexity.
    pub complexity: Complexity,
    /// The requirements.
    pub needs: Requirements,
    /// The pins.
    pub pins: &'a Pins,
    /// What the operator says about the order.
    pub routing: &'a Routing,
}

/// Why a model was selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionReason {
    /// The request selects it.
    PinnedByRequest,
    /// The session selects it.
    PinnedBySession,
    /// The operator names it as the default.
    Default,
    /// It is the first suitable one of the tier: by priority, then by cost.
    Cheapest,
    /// It is suitable, and of the tier.
    InTier,
    /// It is suitable, and of another tier.
    OtherTier,
    /// Its provider is recovering.
    Recovering,
}

/// A model that may be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// The model.
    pub model: ModelRef,
    /// Its tier.
    pub tier: Tier,
    /// Why it was selected.
    pub why: SelectionReason,
    /// The estimated cost of the request.
    pub estimate: Money,
}

/// The result of the router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    /// The tier of the task.
    pub wanted: Tier,
    /// The candidates, the first choice first. Never empty.
    pub candidates: Vec<Candidate>,
    /// The models that are no candidates, with reasons. Empty for a pin.
    pub passed_over: Vec<SkippedCandidate>,
}

/// Routes a request.
///
/// # Errors
/// [`RouteError`]: a pin that matches no model or an unsuitable one, an empty catalog, or no suitable model.
pub fn route(
    catalog: &Catalog,
    question: &RouteQuery<'_>,
    standing: impl Fn(&ModelRef) -> Availability,
) -> Result<Route, RouteError> {
    let Pins { request, session, .. } = question.pins;
    let pin = request
        .as_deref()
        .map(|pin| (pin, SelectionReason::PinnedByRequest))
        .or(session.as_deref().map(|pin| (pin, SelectionReason::PinnedBySession)));
    let named = pin.and_then(|(pin, _)| named_tier(catalog, pin));
    let wanted = named.unwrap_or_else(|| tier_for(question.task, question.complexity));
    if let Some((pin, why)) = pin.filter(|_| named.is_none()) {
        let entry = catalog.find(pin).map_err(RouteError::UnknownPin)?;
        fit(entry, question, &standing)
            .map_err(|why| RouteError::PinUnfit { model: entry.id.clone(), why })?;
        return Ok(Route {
            wanted,
            candidates: vec![candidate(entry, why, question)],
            passed_over: Vec::new(),
        });
    }
    if catalog.entries().is_empty() {
        return Err(RouteError::NoModels);
    }
    let ladder = wanted.ladder();
    let first = question.routing.first(question.task, question.complexity).filter(|_| named.is_none());
    let first = first.and_then(|name| catalog.find(name).ok()).map(|entry| &entry.id);
    let mut fits: Vec<Rank<'_>> = Vec::new();
    let mut passed_over = Vec::new();
    for entry in catalog.entries() {
        match fit(entry, question, &standing) {
            Ok(recovering) => {
                let rung = ladder.iter().position(|tier| *tier == entry.model.tier).unwrap_or(ladder.len());
                let estimate = estimate(&entry.model, question.needs).cost;
                fits.push(Rank {
                    recovering,
                    is_default: Some(&entry.id) == first,
                    rung,
                    priority: question.routing.priority(entry),
                    estimate,
                    is_active: question.pins.active.as_deref() == Some(entry.id.to_string().as_str()),
                    entry,
                });
            }
            Err(why) => passed_over.push(SkippedCandidate { model: entry.id.clone(), why }),
        }
    }
    if fits.is_empty() {
        return Err(RouteError::NoneFits { passed_over });
    }
    // The catalog is in the order of its names, and the sort keeps it among equals.
    fits.sort_by_key(|fit| {
        let weight = u32::MAX - fit.entry.model.weight;
        (fit.recovering, !fit.is_default, fit.rung, fit.priority, fit.estimate, !fit.is_active, weight)
    });
    let candidates = fits
        .iter()
        .enumerate()
        .map(|(index, fit)| {
            let why = match (fit.recovering, fit.is_default, fit.rung, index) {
                (true, ..) => SelectionReason::Recovering,
                (false, true, ..) => SelectionReason::Default,
                (false, false, 0, 0) => SelectionReason::Cheapest,
                (false, false, 0, _) => SelectionReason::InTier,
                (false, false, ..) => SelectionReason::OtherTier,
            };
            candidate(fit.entry, why, question)
        })
        .collect();
    Ok(Route { wanted, candidates, passed_over })
}

/// The tier that a pin names, if it names no model.
fn named_tier(catalog: &Catalog, pin: &str) -> Option<Tier> {
    Tier::of_route(pin).filter(|_| catalog.find(pin).is_err())
}

/// What the order of suitable models follows from.
struct Rank<'c> {
    recovering: bool,
    is_default: bool,
    /// The tier's place on the ladder of the task's.
    rung: usize,
    priority: u32,
    estimate: Money,
    is_active: bool,
    entry: &'c CatalogEntry,
}

fn candidate(entry: &CatalogEntry, why: SelectionReason, question: &RouteQuery<'_>) -> Candidate {
    let estimate = estimate(&entry.model, question.needs).cost;
    Candidate { model: entry.id.clone(), tier: entry.model.tier, why, estimate }
}

/// Whether any model that these pins permit calls tools; `true` as well if they permit none.
pub(in crate::route) fn calls_tools(catalog: &Catalog, pins: &Pins, routing: &Routing) -> bool {
    let pin = pins.request.as_deref().or(pins.session.as_deref());
    if let Some(pin) = pin.filter(|pin| named_tier(catalog, pin).is_none()) {
        return catalog.find(pin).map_or(true, |entry| entry.model.tools);
    }
    let mut permitted = catalog.entries().iter().filter(|entry| routing.permits(entry, pins.local_only));
    let first = permitted.next();
    first.is_none_or(|first| first.model.tools || permitted.any(|entry| entry.model.tools))
}

/// Whether a model is suitable, and whether its provider is recovering.
fn fit(
    entry: &CatalogEntry,
    question: &RouteQuery<'_>,
    standing: &impl Fn(&ModelRef) -> Availability,
) -> Result<bool, RejectionReason> {
    let (model, needs) = (&entry.model, question.needs);
    if !question.routing.permits(entry, question.pins.local_only) {
        return Err(RejectionReason::NotLocal);
    }
    if needs.tools && !model.tools {
        return Err(RejectionReason::NoTools);
    }
    if needs.vision && !model.vision {
        return Err(RejectionReason::NoVision);
    }
    // What an answer is expected to have is a guess; a model whose answers are shorter by nature gives a
    // shorter one.
    let needed = needs.input_tokens.saturating_add(needs.output_tokens.min(model.output_limit()));
    // A question that fills the window leaves no room for an answer.
    if needed > model.context_window || needs.input_tokens >= model.context_window {
        return Err(RejectionReason::Window { takes: model.context_window, needed });
    }
    match standing(&entry.id) {
        Availability::Ready => Ok(false),
        Availability::Recovering => Ok(true),
        Availability::Out(outage) => Err(RejectionReason::Out(outage)),
    }
}

#[cfg(test)]
mod tests;
