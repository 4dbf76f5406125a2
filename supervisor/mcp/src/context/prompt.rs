//! Getting a prompt of a plugin.

use rmcp::ErrorData;
use rmcp::model::{ContentBlock, GetPromptRequestParams, GetPromptResult, PromptMessage, Role};
use serde_json::json;
use talon_proto::mcp_actions::PROMPTS_GET;

use super::address::{of_prompt, shown};
use super::provider::Providers;
use super::request::Requester;
use crate::answer_meta::meta;
use crate::media;

/// A prompt as one message of the user: the guarded block, with each of the plugin's messages after its role. What a
/// plugin says never stands in a conversation as the words of its user or of the model. Media follow it.
pub(crate) async fn get_prompt(
    requester: &Requester,
    providers: &Providers,
    params: GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let place = of_prompt(&params.name);
    let place = place.filter(|(plugin, _)| providers.get(*plugin).is_some_and(|of| of.has(PROMPTS_GET)));
    let Some((plugin, name)) = place else {
        let text = format!("Unknown prompt: {}. List the prompts again.", shown(&params.name));
        return Err(ErrorData::invalid_params(text, None));
    };
    let mut arguments = json!({ "name": name });
    if let Some(given) = params.arguments {
        arguments["arguments"] = given.into();
    }
    let answer = requester.call(plugin, PROMPTS_GET, &arguments, None).await?;
    let meta = meta(&answer);
    let blocks = std::iter::once(ContentBlock::text(answer.block));
    let media = answer.media.into_iter().filter_map(media::content);
    let messages = blocks.chain(media).map(|content| PromptMessage::new(Role::User, content)).collect();
    let mut result = GetPromptResult::new(messages);
    result.meta = Some(meta);
    Ok(result)
}
