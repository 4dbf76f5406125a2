//! Completing arguments of a plugin's prompts and resource templates.

use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo};
use serde_json::{Value, json};
use talon_proto::mcp_actions::COMPLETE;

use super::address::{of_client, of_prompt, shown};
use super::provider::Providers;
use super::request::Requester;

/// The values that a plugin proposes. One that has prompts or resources and completes nothing proposes none.
pub(crate) async fn complete(
    requester: &Requester,
    providers: &Providers,
    params: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let asked = serde_json::to_value(params).unwrap_or_default();
    let reference = &asked["ref"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = match reference["type"].as_str() {
        Some("ref/prompt") => ("prompt", text(&reference["name"])),
        _ => ("resource", text(&reference["uri"])),
    };
    let place = if kind == "prompt" { of_prompt(&name) } else { of_client(&name) };
    let place = place.and_then(|(plugin, theirs)| Some((plugin, theirs, providers.get(plugin)?)));
    let Some((plugin, theirs, provider)) = place else {
        let text = format!("No plugin offers {}: list prompts and templates again.", shown(&name));
        return Err(ErrorData::invalid_params(text, None));
    };
    if !provider.has(COMPLETE) {
        return Ok(CompleteResult::default());
    }
    let argument = &asked["argument"];
    let mut arguments =
        json!({ "kind": kind, "name": theirs, "argument": argument["name"], "value": argument["value"] });
    if let Some(others) = asked["context"].get("arguments").filter(|others| others.is_object()) {
        arguments["context"] = others.clone();
    }
    let answer = requester.call(plugin, COMPLETE, &arguments, None).await?;
    let completion: Result<CompletionInfo, _> = serde_json::from_str(&answer.structured_content);
    completion.map(CompleteResult::new).map_err(|_| {
        ErrorData::internal_error(
            format!("the plugin {plugin} proposes values in a form that is not known"),
            None,
        )
    })
}
