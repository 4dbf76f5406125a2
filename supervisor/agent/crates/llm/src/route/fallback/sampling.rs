//! How a model answers: what a request says, or else its entry in the catalog.

use talon_agent_settings::{Model, SamplingNumber};

use crate::model::Request;

/// Sets what the catalog says where the request says nothing. `asked` is the request without any model's values.
pub(super) fn apply(request: &mut Request, asked: &Request, model: &Model) {
    request.temperature = asked.temperature.or_else(|| model.temperature.map(SamplingNumber::short));
    request.top_p = asked.top_p.or_else(|| model.top_p.map(SamplingNumber::short));
    request.thinking = match model.thinking {
        Some(own) if asked.is_general_thinking => own,
        _ => asked.thinking,
    };
}

#[cfg(test)]
mod tests {
    use talon_agent_settings::{CatalogKeys, Thinking};

    use super::*;

    // Promises: AGENT-115
    #[test]
    fn a_request_is_stronger_than_the_catalog() {
        let yaml = "p/m: { tier: mid, context_window: 1000, free: true, temperature: 0.2, top_p: 0.9, thinking: high }";
        let keys: CatalogKeys = serde_saphyr::from_str(yaml).expect("a catalog");
        let model = &keys.0["p/m"];
        let applied = |asked: &Request| {
            let mut request = asked.clone();
            apply(&mut request, asked, model);
            (request.temperature, request.top_p, request.thinking)
        };
        let silent = Request { is_general_thinking: true, ..Request::default() };
        assert_eq!(applied(&silent), (Some(0.2), Some(0.9), Thinking::High));
        let asked = Request {
            temperature: Some(1.0),
            top_p: Some(0.5),
            thinking: Thinking::Low,
            ..Request::default()
        };
        assert_eq!(applied(&asked), (Some(1.0), Some(0.5), Thinking::Low));
    }
}
