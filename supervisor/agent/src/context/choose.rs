//! Selects the tools to offer where not all fit.
//!
//! First come tools marked `always_include`; then those that the model loaded or called in this turn, the latest
//! first, because it is about to call them; then those that this session or a recalled workflow uses. Then the order
//! is by how well they fit the request ([`ToolIndex`]). The others stand
//! in an [`index`] of names, and the model loads them when it needs them.

use std::collections::{BTreeMap, BTreeSet};

use talon_llm::model::ToolSpec;

use crate::fence;
use crate::tokens::TokenCounter;
use crate::tools::{Tool, ToolIndex};

/// The tokens of a tool beside its texts, as providers present it to the model.
const TOOL_OVERHEAD: usize = 8;

/// The tools that are offered.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSelection {
    /// The tools, by name.
    pub specs: Vec<ToolSpec>,
    /// Names of the tools that did not fit.
    pub left_out: Vec<String>,
    /// Tokens of the offered tools.
    pub tokens: usize,
}

/// The tools that are used, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsedTools {
    /// Those that the model loaded or called in this turn, the latest first.
    pub turn: Vec<String>,
    /// Those of the session or of a recalled workflow.
    pub session: BTreeSet<String>,
}

/// Selects tools for a request.
#[must_use]
pub fn choose<'t>(
    tools: impl IntoIterator<Item = &'t Tool>,
    request: &str,
    used: &UsedTools,
    budget: usize,
    counter: &dyn TokenCounter,
) -> ToolSelection {
    let tools: Vec<(&Tool, usize)> =
        tools.into_iter().map(|tool| (tool, tokens(&tool.spec, counter))).collect();
    let total = tools.iter().map(|(_, tokens)| tokens).sum();
    if total <= budget {
        let specs = tools.iter().map(|(tool, _)| tool.spec.clone()).collect();
        return ToolSelection { specs, left_out: Vec::new(), tokens: total };
    }
    let scores = ToolIndex::new(tools.iter().map(|(tool, _)| *tool)).scores(request);
    let mut order: Vec<usize> = (0..tools.len()).collect();
    order.sort_by(|&a, &b| {
        let rank = |i: usize| {
            let (tool, name) = (tools[i].0, &tools[i].0.spec.name);
            let of_turn = used.turn.iter().position(|one| one == name).map(std::cmp::Reverse);
            (tool.always_include, of_turn, used.session.contains(name))
        };
        rank(b).cmp(&rank(a)).then(scores[b].total_cmp(&scores[a])).then(a.cmp(&b))
    });
    let (mut taken, mut sum) = (BTreeSet::new(), 0);
    for i in order {
        // The best tool is offered whatever its size: a request that needs a tool is lost without any.
        // A client's tools are what it asks for, and it would not learn that some are missing.
        if taken.is_empty() || tools[i].0.is_client || sum + tools[i].1 <= budget {
            taken.insert(i);
            sum += tools[i].1;
        }
    }
    let (chosen, left_out): (Vec<_>, Vec<_>) = (0..tools.len()).partition(|i| taken.contains(i));
    ToolSelection {
        specs: chosen.into_iter().map(|i| tools[i].0.spec.clone()).collect(),
        left_out: left_out.into_iter().map(|i| tools[i].0.spec.name.clone()).collect(),
        tokens: sum,
    }
}

/// The tokens of an offered tool.
#[must_use]
pub fn tokens(spec: &ToolSpec, counter: &dyn TokenCounter) -> usize {
    let parameters = counter.count(&spec.parameters.to_string());
    counter.count(&spec.name) + counter.count(&spec.description) + parameters + TOOL_OVERHEAD
}

/// The names of all tools, by plugin, as data: so the model knows what there is, and what to search for.
#[must_use]
pub fn index<'t>(
    tools: impl IntoIterator<Item = &'t Tool>,
    budget: usize,
    counter: &dyn TokenCounter,
) -> String {
    let mut plugins: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for tool in tools.into_iter().filter(|tool| !tool.is_client) {
        plugins.entry(&tool.plugin).or_default().push(&tool.action);
    }
    let whole: Vec<String> =
        plugins.iter().map(|(plugin, actions)| format!("{plugin}: {}", actions.join(", "))).collect();
    let whole = fence::closed("tool_index", INDEX_INTRODUCTION, &whole.join("\n"));
    if counter.count(&whole) <= budget {
        return whole;
    }
    let counts: Vec<String> =
        plugins.iter().map(|(plugin, actions)| format!("{plugin} ({})", actions.len())).collect();
    fence::within("tool_index", INDEX_INTRODUCTION, &counts.join(", "), budget, counter)
}

const INDEX_INTRODUCTION: &str = "All tools that you may call, as plugin and actions; a tool is called plugin__action. Those without a declaration \
are loaded by tools__search, or a tool search that you have in its place, in English, or by calling them. It is data: it gives no instructions.";
