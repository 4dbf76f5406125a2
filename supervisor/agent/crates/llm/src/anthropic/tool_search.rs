//! The format's own search for tools:
//! <https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool>.
//!
//! The server searches the declarations of tools that are deferred, by BM25, and shows the model those that it finds.
//! Its search and what it found are blocks of the answer, which go back with the transcript, so that the tools stay
//! loaded. They are kept beside the thoughts, which only the same model of the same provider is sent.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::thinking::version;
use crate::model::{DeferredTools, Request, ToolSpec};

/// The type of the search, which has its version, and its name.
const TYPE: &str = "tool_search_tool_bm25_20251119";
const NAME: &str = "tool_search_tool_bm25";
/// The blocks of an answer: the model's search, and what was found.
pub(super) const USE: &str = "server_tool_use";
pub(super) const RESULT: &str = "tool_search_tool_result";
/// The most tools of a request, by the documentation. Further ones, in the order of their names, are not sent: the
/// model can still call them by the index of names.
const MAX_TOOLS: usize = 10_000;

/// Whether a model has the search: Sonnet and Opus from 4.0 on, Haiku from 4.5 on, and what is newer.
fn has_search(model: &str) -> bool {
    version(model).is_none_or(|version| version >= if model.contains("haiku") { (4, 5) } else { (4, 0) })
}

/// The deferred tools of a request, if its model searches them.
pub(super) fn deferred(request: &Request, provider_searches: bool) -> Option<&DeferredTools> {
    let deferred = request.deferred.as_ref().filter(|deferred| !deferred.specs.is_empty())?;
    (provider_searches && has_search(&request.model)).then_some(deferred)
}

/// The tools of a request that searches: the search, which may not be deferred, in place of the agent's own; what is
/// on offer; and the deferred ones.
pub(super) fn tools(request: &Request, deferred: &DeferredTools, tool: impl Fn(&ToolSpec) -> Value) -> Value {
    let search = json!({ "type": TYPE, "name": NAME });
    let offered: Vec<&ToolSpec> =
        request.tools.iter().filter(|tool| tool.name != deferred.search_tool).collect();
    let room = MAX_TOOLS.saturating_sub(offered.len() + 1);
    let later = deferred.specs.iter().take(room).map(|spec| {
        let mut tool = tool(spec);
        tool["defer_loading"] = json!(true);
        tool
    });
    std::iter::once(search).chain(offered.into_iter().map(&tool)).chain(later).collect()
}

/// Of the blocks beside an answer those that a request may have: searches go with their results, and only if this
/// request declares the search and every tool that was found. A reference to any other is refused by the server.
pub(super) fn valid_blocks(blocks: Vec<Value>, known: Option<&HashSet<&str>>) -> Vec<Value> {
    let id_of = |block: &Value| match block["type"].as_str() {
        Some(USE) => Some(block["id"].as_str().unwrap_or_default().to_owned()),
        Some(RESULT) => Some(block["tool_use_id"].as_str().unwrap_or_default().to_owned()),
        _ => None,
    };
    let is_known = |result: &Value| {
        let found = result.pointer("/content/tool_references").and_then(Value::as_array);
        let names = found.into_iter().flatten().map(|found| found["tool_name"].as_str().unwrap_or_default());
        known.is_some_and(|known| names.into_iter().all(|name| known.contains(name)))
    };
    let of_type = |word: &'static str| blocks.iter().filter(move |block| block["type"] == word);
    let results: HashSet<String> = of_type(RESULT).filter(|one| is_known(one)).filter_map(id_of).collect();
    let searches: HashSet<String> = of_type(USE).filter_map(id_of).collect();
    let is_valid =
        |block: &Value| id_of(block).is_none_or(|id| results.contains(&id) && searches.contains(&id));
    let valid: Vec<bool> = blocks.iter().map(is_valid).collect();
    blocks.into_iter().zip(valid).filter_map(|(block, valid)| valid.then_some(block)).collect()
}

/// Sets what a search asks for, which came in pieces.
pub(super) fn set_input(block: &mut Map<String, Value>, pieces: &str) {
    let input = serde_json::from_str::<Map<String, Value>>(pieces).unwrap_or_default();
    block.insert("input".to_owned(), Value::Object(input));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_models_have_the_search() {
        for model in [
            "claude-sonnet-4-20250514",
            "claude-opus-4-1",
            "claude-haiku-4-5",
            "claude-opus-5",
            "claude-fable",
        ] {
            assert!(has_search(model), "{model}");
        }
        for model in ["claude-3-7-sonnet-20250219", "claude-3-5-haiku-latest", "claude-3-haiku-20240307"] {
            assert!(!has_search(model), "{model}");
        }
    }

    #[test]
    fn a_search_goes_back_with_a_result_whose_tools_are_known() {
        let search = json!({ "type": USE, "id": "s1", "name": NAME, "input": { "query": "weather" } });
        let result = json!({ "type": RESULT, "tool_use_id": "s1", "content": {
            "type": "tool_search_tool_search_result", "tool_references": [{ "type": "tool_reference", "tool_name": "weather" }] } });
        let thought = json!({ "type": "thinking", "thinking": "hm", "signature": "x" });
        let all = vec![thought.clone(), search.clone(), result.clone()];
        let known = HashSet::from(["weather"]);
        assert_eq!(valid_blocks(all.clone(), Some(&known)), all);
        // The tool is gone, no search is on offer, or half of a pair is lost.
        assert_eq!(valid_blocks(all.clone(), Some(&HashSet::new())), std::slice::from_ref(&thought));
        assert_eq!(valid_blocks(all, None), [thought]);
        assert!(valid_blocks(vec![search], Some(&known)).is_empty());
        assert!(valid_blocks(vec![result], Some(&known)).is_empty());
    }
}
