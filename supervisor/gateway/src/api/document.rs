//! `GET /api/openapi.json`, `GET /api/asyncapi.json`: the descriptions of routes and of the WebSocket, from the same types as these.

use std::future::{Ready, ready};

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use super::plugins::Operation;
use crate::app::App;
use crate::events::Envelope;
use crate::events::client_message::{
    ChannelMessage, ClarificationAnswer, ConfirmationAnswer, Resume, SessionUpdate, TurnCancel,
};
use crate::openai::OpenAiError;
use crate::problem::{PROBLEM_JSON, ProblemBody};

/// What stands in the description beside the routes.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "Talon's gateway", description = "Sessions, events and plugins of one Talon, over HTTP."),
    components(schemas(ProblemBody<'static>, OpenAiError, Operation, Envelope, ChannelMessage, ConfirmationAnswer, ClarificationAnswer, Resume, TurnCancel, SessionUpdate)),
    security(("token" = []))
)]
struct Frame;

/// The routes of the descriptions; `routes` is what is described.
pub(super) fn routes(routes: OpenApi) -> Router<App> {
    let openapi = openapi(routes);
    Router::new()
        .route("/api/asyncapi.json", get(document(asyncapi(&openapi))))
        .route("/api/openapi.json", get(document(openapi)))
}

/// The description of these routes.
pub(super) fn openapi(routes: OpenApi) -> Value {
    let mut openapi = Frame::openapi();
    openapi.merge(routes);
    openapi.info.version = env!("CARGO_PKG_VERSION").to_owned();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    openapi.components.get_or_insert_default().add_security_scheme("token", bearer);
    let mut openapi = serde_json::to_value(openapi).expect("a description is texts and numbers");
    describe_problems(&mut openapi);
    openapi
}

/// Every operation may end with a problem, and all have one form, but those below `/v1`.
fn describe_problems(openapi: &mut Value) {
    let ends = |kind: &str, schema: &str| {
        json!({
            "description": "Something is wrong: the status, the type and the text say what.",
            "content": {kind: {"schema": {"$ref": format!("#/components/schemas/{schema}")}}},
        })
    };
    for (path, operations) in openapi["paths"].as_object_mut().into_iter().flatten() {
        let is_dialect = path.starts_with("/v1/");
        let end =
            if is_dialect { ends("application/json", "OpenAiError") } else { ends(PROBLEM_JSON, "Problem") };
        for operation in operations.as_object_mut().into_iter().flat_map(Map::values_mut) {
            if let Some(responses) = operation.get_mut("responses").and_then(Value::as_object_mut) {
                responses.insert("default".to_owned(), end.clone());
            }
        }
    }
}

/// Answers with a document that is written once.
fn document(document: Value) -> impl Fn() -> Ready<Response> + Clone + Send + Sync + 'static {
    let text = Bytes::from(document.to_string());
    move || ready(([(CONTENT_TYPE, "application/json")], text.clone()).into_response())
}

/// What the client sends, by type.
const CLIENT_PAYLOADS: [(&str, &str); 6] = [
    ("channel.message", "ChannelMessage"),
    ("confirmation.answer", "ConfirmationAnswer"),
    ("clarification.answer", "ClarificationAnswer"),
    ("resume", "Resume"),
    ("turn.cancel", "TurnCancel"),
    ("session.update", "SessionUpdate"),
];

/// The description of the WebSocket, as AsyncAPI 3.0.
pub(super) fn asyncapi(openapi: &Value) -> Value {
    let schemas = &openapi["components"]["schemas"];
    let sent = schemas["ServerEvent"]["oneOf"].as_array().into_iter().flatten().filter_map(|variant| {
        let kind = variant["properties"]["type"]["enum"][0].as_str()?;
        Some((kind.to_owned(), message(kind, &variant["properties"]["payload"])))
    });
    let received = CLIENT_PAYLOADS.into_iter().map(|(kind, schema)| {
        let payload = json!({"$ref": format!("#/components/schemas/{schema}")});
        (format!("client.{kind}"), message(kind, &payload))
    });
    let messages: Map<String, Value> = sent.chain(received).collect();
    let refer = |is_client: bool| -> Vec<Value> {
        let names = messages.keys().filter(|name| name.starts_with("client.") == is_client);
        names.map(|name| json!({"$ref": format!("#/channels/websocket/messages/{name}")})).collect()
    };
    let operations = json!({
        "receiveEvents": {"action": "send", "channel": {"$ref": "#/channels/websocket"}, "messages": refer(false)},
        "sendMessages": {"action": "receive", "channel": {"$ref": "#/channels/websocket"}, "messages": refer(true)},
    });
    let listed: Map<String, Value> = messages
        .keys()
        .map(|name| (name.clone(), json!({"$ref": format!("#/components/messages/{name}")})))
        .collect();
    json!({
        "asyncapi": "3.0.0",
        "info": {"title": "Talon's gateway", "version": env!("CARGO_PKG_VERSION")},
        "defaultContentType": "application/json",
        "channels": {"websocket": {"address": "/ws", "messages": listed}},
        "operations": operations,
        "components": {"messages": messages, "schemas": schemas},
    })
}

/// A message of this type around this payload.
fn message(kind: &str, payload: &Value) -> Value {
    json!({"name": kind, "payload": {
        "type": "object",
        "required": ["id", "type", "timestamp", "payload"],
        "properties": {
            "id": {"type": "string"},
            "type": {"type": "string", "const": kind},
            "timestamp": {"type": "integer", "minimum": 0},
            "sequence": {"type": "integer", "minimum": 0},
            "payload": payload,
        },
    }})
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
