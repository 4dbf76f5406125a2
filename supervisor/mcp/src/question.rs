//! A plugin's question to the user, as MCP's elicitation.
//!
//! Clients before 2026-07-28 are asked by a request of ours while their call waits. Later ones get the question as the
//! result of their call, and call again with the answer.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequest as McpInputRequest, InputRequests, InputRequiredResult, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use talon_arguments::form::Form;
use talon_proto::host::ExecuteResponse;
use talon_proto::plugin::{InputRequest, InputResponse};

use crate::tools::OfferedTool;

/// How long a client may take to answer: less than a plugin of ours waits (600 s), so that it learns of the end.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(590);
/// The key of the question in a result, and of its answer.
const KEY: &str = "question";

/// Whether the client can put a question with a form to its user.
pub(crate) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let capability = context.client_capabilities().and_then(|client| client.elicitation);
    // A client that names no mode has forms.
    capability.is_some_and(|asks| asks.form.is_some() || asks.url.is_none())
}

/// Whether the client gets questions as results.
fn gets_results(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

/// The user's answer that comes with a call, if one does.
///
/// # Errors
/// It is none.
pub(crate) fn answer_of(params: &CallToolRequestParams) -> Result<Option<InputResponse>, ErrorData> {
    let (Some(id), Some(responses)) = (&params.request_state, &params.input_responses) else {
        return Ok(None);
    };
    let answer = responses.get(KEY).cloned().unwrap_or_else(|| json!({ "action": "cancel" }));
    let answer: ElicitResult = serde_json::from_value(answer).map_err(|error| {
        ErrorData::invalid_params(
            format!("inputResponses.{KEY} is no result of elicitation/create: {error}"),
            None,
        )
    })?;
    Ok(Some(response(id, answer)))
}

/// What becomes of a question.
pub(crate) enum AskedUser {
    /// The user's answer, for the next call.
    Answered(InputResponse),
    /// The client gets it as the result.
    AsResult(InputRequiredResult),
    /// It cannot be asked; the text says why.
    Impossible(String),
}

/// Asks the user.
pub(crate) async fn ask(
    offered: &OfferedTool,
    answer: &ExecuteResponse,
    question: &InputRequest,
    context: &RequestContext<RoleServer>,
) -> AskedUser {
    let params = json!({
        "mode": "form",
        "message": attributed(&offered.plugin, &offered.action, &answer.content),
        "requestedSchema": form(&question.schema),
    });
    let params: ElicitRequestParams = match serde_json::from_value(params) {
        Ok(params) => params,
        Err(error) => {
            return AskedUser::Impossible(format!("the plugin's question cannot be asked over MCP: {error}"));
        }
    };
    let request = ElicitRequest::new(params);
    if gets_results(context) {
        let requests: InputRequests = [(KEY.to_owned(), McpInputRequest::Elicitation(request))].into();
        return AskedUser::AsResult(InputRequiredResult::new(Some(requests), Some(question.id.clone())));
    }
    let options = PeerRequestOptions::with_timeout(ANSWER_TIMEOUT);
    let sent = context.peer.send_request_with_option(ServerRequest::ElicitRequest(request), options).await;
    let answered = match sent {
        Ok(handle) => handle.await_response().await,
        Err(error) => Err(error),
    };
    let cancelled = || ElicitResult::new(ElicitationAction::Cancel);
    let answer = match answered {
        Ok(ClientResult::ElicitResult(answer)) => answer,
        Ok(_) => cancelled(),
        Err(error) => {
            tracing::info!("a question got no answer from the client: {error}");
            cancelled()
        }
    };
    let answer = response(&question.id, answer);
    let fits = Form::parse(&question.schema).is_ok_and(|form| form.check(&answer.content_json).is_ok());
    if answer.action == "accept" && !fits {
        tracing::info!("an answer of the client does not fit its question: it counts as cancelled");
        return AskedUser::Answered(response(&question.id, cancelled()));
    }
    AskedUser::Answered(answer)
}

fn response(id: &str, answer: ElicitResult) -> InputResponse {
    let (action, content_json) = match answer.action {
        ElicitationAction::Accept => ("accept", answer.content.unwrap_or_else(|| json!({})).to_string()),
        ElicitationAction::Decline => ("decline", String::new()),
        _ => ("cancel", String::new()),
    };
    InputResponse { id: id.to_owned(), action: action.to_owned(), content_json }
}

/// The form, with the two keys that clients expect of each.
fn form(schema: &str) -> Value {
    let mut form = serde_json::from_str(schema).unwrap_or_else(|_| json!({}));
    if let Value::Object(fields) = &mut form {
        fields.entry("type").or_insert_with(|| json!("object"));
        fields.entry("properties").or_insert_with(|| json!({}));
    }
    form
}

/// The question with its author, each line of it quoted: so no plugin can speak as Talon, or as the client.
fn attributed(plugin: &str, action: &str, text: &str) -> String {
    let mut message =
        format!("The plugin {plugin} asks this in a call of {action}. The words are the plugin's:");
    for line in text.lines() {
        message.push_str("\n> ");
        message.push_str(line);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: MCP-43
    #[test]
    fn every_line_of_a_question_is_the_plugins() {
        let shown = attributed("notes", "add", "Sure?\n\nTalon asks for your password:\r\nnow");
        let mut lines = shown.lines();
        assert!(lines.next().unwrap().starts_with("The plugin notes asks"));
        assert!(lines.all(|line| line.starts_with('>')), "{shown}");
    }

    #[test]
    fn an_answer_comes_with_the_state_of_its_question() {
        let call = |state: Option<&str>, responses: Option<Value>| {
            let mut params = CallToolRequestParams::new("t");
            params.request_state = state.map(str::to_owned);
            params.input_responses = responses.map(|all| serde_json::from_value(all).unwrap());
            answer_of(&params)
        };
        assert_eq!(call(None, Some(json!({}))).unwrap(), None);
        let of = |answer: Value| call(Some("q1"), Some(json!({ KEY: answer })));
        let accepted = of(json!({"action": "accept", "content": {"a": 1}})).unwrap().unwrap();
        assert_eq!((accepted.id.as_str(), accepted.content_json.as_str()), ("q1", r#"{"a":1}"#));
        assert_eq!(of(json!({"action": "decline"})).unwrap().unwrap().action, "decline");
        assert_eq!(call(Some("q1"), Some(json!({}))).unwrap().unwrap().action, "cancel");
        assert!(of(json!({"action": "maybe"})).is_err());
    }

    #[test]
    fn a_form_always_has_a_type_and_properties() {
        assert_eq!(form("{}"), json!({"type": "object", "properties": {}}));
        assert_eq!(form(r#"{"type":"object","properties":{"a":{}}}"#)["properties"], json!({"a": {}}));
    }
}
