//! Which models may answer a request, the best first. A pure function.
//!
//! 1. The task and its complexity give a tier ([`tier_for`]).
//! 2. Models that cannot do it are left out: no tools, no vision, too small a window; and those that are out of service.
//! 3. Within the tier the cheapest for this very request comes first, by its estimate. Of equal cost the heavier comes first,
//!    and of equal weight the one whose name does.
//! 4. Models of other tiers follow, by [`Tier::ladder`].
//! 5. Models of a provider that is just coming back stand behind all others of that list: it is asked again when it has shown
//!    that it is well, or if nobody else is left.
//!
//! A pin is stronger than all of this: it names the one model that may answer, and there is no other. One of the request is
//! stronger than one of the session. A pinned model that cannot do it is an error that says so, never another model.

mod error;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::error::RouteError;
pub(super) use self::error::{Shown, reasons};
use super::catalog::{Catalog, Entry, ModelRef};
use super::cost::estimate;
use super::task::{Complexity, Task, Tier, tier_for};
use crate::route::Money;

/// What a model must be able to do for a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Call tools.
    pub tools: bool,
    /// Look at pictures.
    pub vision: bool,
    /// Take in so many tokens.
    pub input_tokens: u64,
    /// Answer with so many, as far as anybody knows.
    pub output_tokens: u64,
}

/// Models that somebody wants, by provider and name, alias, or name alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// For this request.
    pub request: Option<String>,
    /// For the session; the request's is stronger.
    pub session: Option<String>,
}

/// Whether a model's provider can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It can.
    Ready,
    /// It failed, and is on its way back: asked last.
    Recovering,
    /// It cannot.
    Out(Outage),
}

/// Why a model cannot be asked now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Outage {
    /// Its provider needs a key and has none, or is not set up.
    NotSetUp {
        /// What to do, for people.
        what: String,
    },
    /// Its provider failed again and again.
    Failing {
        /// How long it is left alone.
        #[serde(rename = "retry_in_ms", serialize_with = "as_millis")]
        retry_in: Duration,
    },
    /// It has had as many requests as it takes.
    RateLimited {
        /// How long it is left alone.
        #[serde(rename = "retry_in_ms", serialize_with = "as_millis")]
        retry_in: Duration,
    },
    /// The account has no credit.
    NoCredit {
        /// How long it is left alone.
        #[serde(rename = "retry_in_ms", serialize_with = "as_millis")]
        retry_in: Duration,
    },
}

fn as_millis<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// What is to be routed.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// What is asked for.
    pub task: Task,
    /// How hard it is.
    pub complexity: Complexity,
    /// What it takes.
    pub needs: Needs,
    /// What somebody wants.
    pub pins: &'a Pins,
}

/// Why a model stands where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The request names it.
    PinnedByRequest,
    /// The session names it.
    PinnedBySession,
    /// It is the cheapest of the tier that can do it.
    Cheapest,
    /// It can do it, and is of the tier.
    InTier,
    /// It can do it, and is of another tier.
    OtherTier,
    /// Its provider is on its way back.
    Recovering,
}

/// A model that may be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// Which.
    pub model: ModelRef,
    /// Its tier.
    pub tier: Tier,
    /// Why it stands here.
    pub why: Why,
    /// What the request would cost there.
    pub estimate: Money,
}

/// Why a model is no candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Unfit {
    /// It calls no tools.
    NoTools,
    /// It looks at no pictures.
    NoVision,
    /// The request does not fit in its window.
    Window {
        /// As many tokens as it takes.
        takes: u64,
        /// As many as are needed.
        needed: u64,
    },
    /// It cannot be asked now.
    Out(Outage),
}

/// A model that is no candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    /// Which.
    pub model: ModelRef,
    /// Why.
    #[serde(flatten)]
    pub why: Unfit,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Route {
    /// The tier that the task takes.
    pub wanted: Tier,
    /// Who may be asked, the first one first. Never empty.
    pub candidates: Vec<Candidate>,
    /// Who may not, and why not. Empty for a pin.
    pub passed_over: Vec<PassedOver>,
}

/// Routes a question.
///
/// # Errors
/// [`RouteError`]: a pin that means no model or one that cannot, an empty catalog, or no model that can.
pub fn route(
    catalog: &Catalog,
    question: &Question<'_>,
    standing: impl Fn(&ModelRef) -> Standing,
) -> Result<Route, RouteError> {
    let wanted = tier_for(question.task, question.complexity);
    let Pins { request, session } = question.pins;
    let pin = request
        .as_deref()
        .map(|pin| (pin, Why::PinnedByRequest))
        .or(session.as_deref().map(|pin| (pin, Why::PinnedBySession)));
    if let Some((pin, why)) = pin {
        let entry = catalog.find(pin).map_err(RouteError::UnknownPin)?;
        fit(entry, question.needs, &standing)
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
    let mut fits: Vec<(bool, usize, Money, u32, &Entry)> = Vec::new();
    let mut passed_over = Vec::new();
    for entry in catalog.entries() {
        match fit(entry, question.needs, &standing) {
            Ok(recovering) => {
                let rung = ladder.iter().position(|tier| *tier == entry.model.tier).unwrap_or(ladder.len());
                let estimate = estimate(&entry.model, question.needs).cost;
                fits.push((recovering, rung, estimate, u32::MAX - entry.model.weight, entry));
            }
            Err(why) => passed_over.push(PassedOver { model: entry.id.clone(), why }),
        }
    }
    if fits.is_empty() {
        return Err(RouteError::NoneFits { passed_over });
    }
    // The catalog is in the order of its names, and the sort keeps it among equals.
    fits.sort_by_key(|fit| (fit.0, fit.1, fit.2, fit.3));
    let candidates = fits
        .iter()
        .enumerate()
        .map(|(index, (recovering, rung, .., entry))| {
            let why = match (recovering, rung, index) {
                (true, ..) => Why::Recovering,
                (false, 0, 0) => Why::Cheapest,
                (false, 0, _) => Why::InTier,
                (false, ..) => Why::OtherTier,
            };
            candidate(entry, why, question)
        })
        .collect();
    Ok(Route { wanted, candidates, passed_over })
}

fn candidate(entry: &Entry, why: Why, question: &Question<'_>) -> Candidate {
    let estimate = estimate(&entry.model, question.needs).cost;
    Candidate { model: entry.id.clone(), tier: entry.model.tier, why, estimate }
}

/// Whether a model can do it, and whether its provider is just recovering.
fn fit(entry: &Entry, needs: Needs, standing: &impl Fn(&ModelRef) -> Standing) -> Result<bool, Unfit> {
    let model = &entry.model;
    if needs.tools && !model.tools {
        return Err(Unfit::NoTools);
    }
    if needs.vision && !model.vision {
        return Err(Unfit::NoVision);
    }
    // What an answer is expected to have is a guess; a model whose answers are shorter by nature gives a shorter one.
    let needed = needs.input_tokens.saturating_add(needs.output_tokens.min(model.output_limit()));
    // A question that fills the window leaves no room for an answer.
    if needed > model.context_window || needs.input_tokens >= model.context_window {
        return Err(Unfit::Window { takes: model.context_window, needed });
    }
    match standing(&entry.id) {
        Standing::Ready => Ok(false),
        Standing::Recovering => Ok(true),
        Standing::Out(outage) => Err(Unfit::Out(outage)),
    }
}

#[cfg(test)]
mod tests;
