//! Thinking parameters: older models take a budget of tokens, newer ones an effort.

use serde_json::{Map, Value, json};

use crate::model::Thinking;

/// The answer's token limit of a model that is not known. The format requires a number.
const DEFAULT_MAX_TOKENS: u32 = 8192;

/// The answer's token limit if the request has none: the model's own, as
/// <https://docs.anthropic.com/en/docs/about-claude/models/overview> has it.
fn model_limit(model: &str) -> Option<u32> {
    Some(match version(model)? {
        (..3, _) | (3, ..5) => 4096,
        (3, ..7) => 8192,
        (4, 0 | 1) if model.contains("opus") => 32_000,
        _ => 64_000,
    })
}
/// The smallest budget that is accepted.
const MIN_BUDGET_TOKENS: u32 = 1024;
/// The tokens left for the answer where budget and answer share a limit.
const MIN_ANSWER_TOKENS: u32 = 1024;

/// The thinking budget of each level. The documentation calls 16,000 plenty for most, and the minimum a
/// start.
fn budget_tokens(thinking: Thinking) -> u32 {
    match thinking {
        Thinking::Off => 0,
        Thinking::Low => 2048,
        Thinking::Medium => 8192,
        Thinking::High => 16_384,
    }
}

/// The parameters that a model accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ModelCapabilities {
    /// `thinking: adaptive` with an effort; models from 4.7 on reject a budget.
    pub(super) adaptive: bool,
    /// A temperature, which models from 4.7 on reject.
    pub(super) temperature: bool,
}

/// Derived from the version in the model's name: `claude-3-7-sonnet-20250219` is 3.7, `claude-opus-4-7` 4.7
/// and `claude-sonnet-4-20250514` 4.0. A name without a version counts as a newer model.
pub(super) fn capabilities(model: &str) -> ModelCapabilities {
    let Some(version) = version(model) else {
        return ModelCapabilities { adaptive: true, temperature: false };
    };
    ModelCapabilities { adaptive: version >= (4, 6), temperature: version < (4, 7) }
}

/// The version in a model's name.
pub(super) fn version(model: &str) -> Option<(u32, u32)> {
    // Gateways prefix the name with a path, and some write the version with a dot.
    let name = model.rsplit('/').next().unwrap_or(model);
    // A date has eight digits.
    let mut numbers = name
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| (1..=2).contains(&digits.len()))
        .filter_map(|digits| digits.parse::<u32>().ok());
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

/// Adds the parameters of a level, and the token limit. Returns whether the model thinks.
pub(super) fn ask(body: &mut Map<String, Value>, model: &str, thinking: Thinking, max: Option<u32>) -> bool {
    let budget = budget_tokens(thinking);
    // Thinking counts towards the answer's limit.
    let tokens = max.or_else(|| model_limit(model)).unwrap_or(DEFAULT_MAX_TOKENS + budget);
    body.insert("max_tokens".to_owned(), json!(tokens));
    if thinking == Thinking::Off {
        return false;
    }
    if capabilities(model).adaptive {
        let effort = match thinking {
            Thinking::Off | Thinking::Low => "low",
            Thinking::Medium => "medium",
            Thinking::High => "high",
        };
        body.insert("thinking".to_owned(), json!({ "type": "adaptive" }));
        body.insert("output_config".to_owned(), json!({ "effort": effort }));
        return true;
    }
    let budget = budget.min(tokens.saturating_sub(MIN_ANSWER_TOKENS));
    if budget < MIN_BUDGET_TOKENS {
        return false;
    }
    body.insert("thinking".to_owned(), json!({ "type": "enabled", "budget_tokens": budget }));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_its_version() {
        let adaptive = |model| capabilities(model).adaptive;
        for older in [
            "claude-3-7-sonnet-20250219",
            "claude-3-haiku-20240307",
            "claude-sonnet-4-20250514",
            "claude-opus-4-1",
            "claude-haiku-4-5-20251001",
            "anthropic/claude-sonnet-4.5",
        ] {
            assert!(!adaptive(older), "{older}");
            assert!(capabilities(older).temperature, "{older}");
        }
        for newer in [
            "claude-opus-4-7",
            "claude-sonnet-5",
            "claude-opus-5-20270101",
            "claude-fable",
            "claude-opus-4.8",
        ] {
            assert!(adaptive(newer), "{newer}");
            assert!(!capabilities(newer).temperature, "{newer}");
        }
        assert_eq!(
            capabilities("claude-sonnet-4-6"),
            ModelCapabilities { adaptive: true, temperature: true }
        );
    }

    #[test]
    fn the_budget_leaves_room_for_the_answer() {
        let asked = |max| {
            let mut body = Map::new();
            let thinks = ask(&mut body, "claude-haiku-4-5", Thinking::Medium, max);
            (
                thinks,
                body["max_tokens"].clone(),
                body.get("thinking").map(|field| field["budget_tokens"].clone()),
            )
        };
        assert_eq!(asked(None), (true, json!(64_000), Some(json!(8192))), "the model's own limit");
        assert_eq!(asked(Some(4096)), (true, json!(4096), Some(json!(3072))));
        assert_eq!(asked(Some(2000)), (false, json!(2000), None));
    }
}
