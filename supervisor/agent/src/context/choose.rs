//! Selects the tools to offer where not all fit.
//!
//! First come tools marked `always_include`, and those that this session or a recalled workflow uses; then
//! the order is by how well name, description and arguments match the request. Words that fewer tools have
//! count more. That is a heuristic: an allow-list of the session is the better way to few tools.

use std::collections::{BTreeMap, BTreeSet};

use talon_llm::model::ToolSpec;

use crate::tokens::TokenCounter;
use crate::tools::Tool;

/// The tokens of a tool beside its texts, as providers present it to the model.
const TOOL_OVERHEAD: usize = 8;
/// The weight of a word in a tool's name, relative to one in its description.
const NAME_WEIGHT: f64 = 3.0;
/// Words match if one is a prefix of the other and at least this long: `search` and `searches`.
const MIN_STEM: usize = 4;
/// How much of a request is matched; its beginning says what it is about.
const MAX_QUERY_CHARS: usize = 4096;

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

/// Selects tools for a request. `used` names those that the session or a recalled workflow uses.
#[must_use]
pub fn choose<'t>(
    tools: impl IntoIterator<Item = &'t Tool>,
    request: &str,
    used: &BTreeSet<String>,
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
    let scores = scores(&tools, request);
    let mut order: Vec<usize> = (0..tools.len()).collect();
    order.sort_by(|&a, &b| {
        let rank = |i: usize| (tools[i].0.always_include, used.contains(&tools[i].0.spec.name));
        rank(b).cmp(&rank(a)).then(scores[b].total_cmp(&scores[a])).then(a.cmp(&b))
    });
    let (mut taken, mut sum) = (BTreeSet::new(), 0);
    for i in order {
        // The best tool is offered whatever its size: a request that needs a tool is lost without any.
        if taken.is_empty() || sum + tools[i].1 <= budget {
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

fn scores(tools: &[(&Tool, usize)], request: &str) -> Vec<f64> {
    let request: String = request.chars().take(MAX_QUERY_CHARS).collect();
    let wanted = words(&request);
    let of_tools: Vec<BTreeMap<String, f64>> = tools.iter().map(|(tool, _)| words_of(tool)).collect();
    let mut scores = vec![0.0; tools.len()];
    for word in &wanted {
        let weights: Vec<f64> = of_tools.iter().map(|known| weight(known, word)).collect();
        let having = weights.iter().filter(|weight| **weight > 0.0).count();
        if having == 0 {
            continue;
        }
        let rarity = (1.0 + tools.len() as f64 / having as f64).ln();
        for (score, weight) in scores.iter_mut().zip(weights) {
            *score += weight * rarity;
        }
    }
    scores
}

fn words_of(tool: &Tool) -> BTreeMap<String, f64> {
    let mut known = BTreeMap::new();
    let parameters = tool.spec.parameters.get("properties").and_then(serde_json::Value::as_object);
    for word in parameters.into_iter().flat_map(serde_json::Map::keys).flat_map(|name| words(name)) {
        known.insert(word, 1.0);
    }
    for word in words(&tool.spec.description) {
        known.insert(word, 1.0);
    }
    for word in words(&tool.spec.name) {
        known.insert(word, NAME_WEIGHT);
    }
    known
}

fn weight(known: &BTreeMap<String, f64>, word: &str) -> f64 {
    if let Some(weight) = known.get(word) {
        return *weight;
    }
    let is_stem = |a: &str, b: &str| a.chars().count() >= MIN_STEM && b.starts_with(a);
    let near = known.iter().filter(|(other, _)| is_stem(word, other) || is_stem(other, word));
    near.map(|(_, weight)| weight / 2.0).fold(0.0, f64::max)
}

/// The words in lower case. In scripts without spaces, each character is a word.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut word = String::new();
    let mut was_small = false;
    for c in text.chars() {
        let alone = matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
        // `readFile` is two words.
        if !c.is_alphanumeric() || alone || (was_small && c.is_uppercase()) {
            words.insert(std::mem::take(&mut word));
        }
        if alone {
            words.insert(c.to_string());
        } else if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase();
    }
    words.insert(word);
    words.retain(|word| !word.is_empty());
    words
}
