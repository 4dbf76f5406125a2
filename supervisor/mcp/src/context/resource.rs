//! Reading a resource of a plugin.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, ResourceContents};
use serde_json::json;
use talon_proto::host::ExecuteResponse;
use talon_proto::mcp_actions::RESOURCES_READ;

use super::address::{of_client, shown, to_client};
use super::provider::{Provider, Providers};
use super::request::Requester;
use crate::answer_meta::meta;
use crate::media;

/// Begins the line of each resource in an answer's text.
const RESOURCE_LINE: &str = "[resource ";

/// Whose resource it is, and its own address.
///
/// # Errors
/// No plugin reads resources of such an address.
pub(super) fn resource_place<'p, 'u>(
    providers: &'p Providers,
    uri: &'u str,
) -> Result<(&'p Provider, &'u str, &'u str), ErrorData> {
    let place = of_client(uri).and_then(|(plugin, theirs)| Some((providers.get(plugin)?, plugin, theirs)));
    place.filter(|(provider, ..)| provider.reads()).ok_or_else(|| {
        let text = format!(
            "No plugin offers the resource {}. Its address begins with a plugin's name and `+`: list the resources again.",
            shown(uri)
        );
        ErrorData::resource_not_found(text, None)
    })
}

pub(crate) async fn read_resource(
    requester: &Requester,
    providers: &Providers,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let (_, plugin, theirs) = resource_place(providers, uri)?;
    let answer = requester.call(plugin, RESOURCES_READ, &json!({ "uri": theirs }), None).await?;
    Ok(result(plugin, uri, answer))
}

/// The contents of a resource: what the operator grants (`media: [resource]`) as it is, and otherwise the guarded block.
/// The block is there, too, when something of the resource is missing: it says why.
fn result(plugin: &str, uri: &str, answer: ExecuteResponse) -> ReadResourceResult {
    let meta = meta(&answer);
    let resources = answer.content.lines().filter(|line| line.starts_with(RESOURCE_LINE)).count();
    let cut = answer.report.as_ref().is_some_and(|report| report.truncated);
    let passed: Vec<ResourceContents> = answer
        .media
        .into_iter()
        .filter(|item| item.kind == "resource")
        .map(|mut item| {
            item.uri = to_client(plugin, &item.uri);
            media::resource(item)
        })
        .collect();
    let is_whole = !passed.is_empty() && passed.len() == resources && !cut;
    let mut contents = passed;
    if !is_whole {
        contents.push(ResourceContents::TextResourceContents {
            uri: uri.to_owned(),
            mime_type: Some("text/plain".to_owned()),
            text: answer.block,
            meta: None,
        });
    }
    let mut result = ReadResourceResult::new(contents);
    result.meta = Some(meta);
    result
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, to_value};
    use talon_proto::plugin::Media;

    use super::*;

    fn contents(content: &str, media: Vec<Media>) -> Vec<Value> {
        let block = format!("[plugin_output]\n{content}\n[/plugin_output]");
        let answer =
            ExecuteResponse { content: content.to_owned(), block, media, ..ExecuteResponse::default() };
        let result = to_value(result("p", "p+x:1", answer)).unwrap();
        result["contents"].as_array().unwrap().clone()
    }

    #[test]
    fn what_is_not_granted_is_the_block() {
        let text = Media {
            kind: "resource".to_owned(),
            uri: "x:1".to_owned(),
            text: "one".to_owned(),
            ..Media::default()
        };
        let block = "[plugin_output]\n[resource x:1]\none\n[/plugin_output]";
        let plain = json!({"uri": "p+x:1", "mimeType": "text/plain", "text": block});
        assert_eq!(contents("[resource x:1]\none", Vec::new()), [plain]);
        let granted = contents("[resource x:1]\none", vec![text.clone()]);
        assert_eq!(granted, [json!({"uri": "p+x:1", "text": "one"})]);
        // One of two is missing, or might be: the block says so.
        let partly = contents("[resource x:1]\none\n[resource x:2, 9 bytes]", vec![text]);
        assert_eq!(partly.len(), 2);
        assert!(partly[1]["text"].as_str().unwrap().contains("x:2, 9 bytes"));
    }
}
