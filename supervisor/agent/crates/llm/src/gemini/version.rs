//! What models of each version take.

use serde_json::{Value, json};

use crate::model::Thinking;

/// The version in a name: `gemini-2.5-flash` is 2.5, `gemini-3-pro-preview` 3.0. `None` for others, such as
/// `gemini-flash-latest`.
fn version(model: &str) -> Option<(u32, u32)> {
    let rest = model.rsplit('/').next()?.strip_prefix("gemini-")?;
    let number = rest.split('-').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether calls without a signature are refused.
pub(super) fn demands_signatures(model: &str) -> bool {
    version(model).is_none_or(|version| version >= (3, 0))
}

/// The field `thinkingConfig`: levels from version 3 on, budgets of tokens for 2.5, nothing before.
/// <https://ai.google.dev/gemini-api/docs/thinking> has the ranges.
pub(super) fn thinking(model: &str, thinking: Thinking) -> Option<Value> {
    /// The smallest budget of 2.5 Pro, which always thinks.
    const PRO_MINIMUM: u32 = 128;
    let is_pro = model.contains("pro");
    match version(model) {
        Some(version) if version >= (3, 0) => {
            let level = match thinking {
                Thinking::Off if is_pro => "low",
                Thinking::Off => "minimal",
                Thinking::Low => "low",
                // The first of version 3 has two levels.
                Thinking::Medium if is_pro && version == (3, 0) => "high",
                Thinking::Medium => "medium",
                Thinking::High => "high",
            };
            Some(json!({ "thinkingLevel": level, "includeThoughts": thinking != Thinking::Off }))
        }
        Some(version) if version < (2, 5) => None,
        known => {
            let budget = match thinking {
                // It is not known whether such a model can do without.
                Thinking::Off if known.is_none() => return None,
                Thinking::Off if is_pro => PRO_MINIMUM,
                Thinking::Off => 0,
                Thinking::Low => 2048,
                Thinking::Medium => 8192,
                Thinking::High => 16_384,
            };
            Some(json!({ "thinkingBudget": budget, "includeThoughts": thinking != Thinking::Off }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_its_version() {
        assert_eq!(version("gemini-2.5-flash-lite"), Some((2, 5)));
        assert_eq!(version("models/gemini-3-pro-preview"), Some((3, 0)));
        assert_eq!(version("gemini-flash-latest"), None);
        assert!(demands_signatures("gemini-3.1-pro-preview") && !demands_signatures("gemini-2.0-flash"));
    }
}
