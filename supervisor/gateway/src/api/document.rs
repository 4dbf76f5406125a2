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

/// The route whose stream ends with a text that is no JSON, and that text.
const CHAT_PATH: &str = "/v1/chat/completions";
const STREAM_END: &str = "[DONE]";

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
    describe_streams(&mut openapi);
    openapi
}

/// A stream's schema is that of one event, as it is parsed: the type that the route names is the JSON in its `data`.
fn describe_streams(openapi: &mut Value) {
    for (path, operations) in openapi["paths"].as_object_mut().into_iter().flatten() {
        let operations = operations.as_object_mut().into_iter().flat_map(Map::values_mut);
        let responses = operations.filter_map(|operation| operation.get_mut("responses")?.as_object_mut());
        for response in responses.flat_map(Map::values_mut) {
            let Some(schema) = response.pointer_mut("/content/text~1event-stream/schema") else { continue };
            let json = json!({"contentMediaType": "application/json", "contentSchema": schema.take()});
            let data = match path.as_str() {
                CHAT_PATH => json!({"type": "string", "anyOf": [{"const": STREAM_END}, json]}),
                _ => {
                    json!({"type": "string", "contentMediaType": "application/json", "contentSchema": json["contentSchema"]})
                }
            };
            *schema = json!({
                "type": "object",
                "required": ["data"],
                "properties": {
                    "event": {"type": "string", "description": "The event's type."},
                    "id": {"type": "string", "description": "Where Last-Event-ID goes on from."},
                    "data": data,
                },
            });
        }
    }
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

/// Messages by their names in the description.
type Messages = Map<String, Value>;

/// The description of the WebSocket and of the event bus, as AsyncAPI 3.0.
pub(super) fn asyncapi(openapi: &Value) -> Value {
    let schemas = &openapi["components"]["schemas"];
    let sent = messages(schemas, "", "ServerEvent", &envelope_of(schemas, "Envelope"));
    let received = CLIENT_PAYLOADS.into_iter().map(|(kind, schema)| {
        let payload = json!({"$ref": format!("#/components/schemas/{schema}")});
        (format!("client.{kind}"), message(kind, &payload, &envelope_of(schemas, "Envelope")))
    });
    let received: Messages = received.collect();
    let watched = messages(schemas, "bus.", "BusEvent", &envelope_of(schemas, "BusEnvelope"));
    let operation = |action: &str, channel: &str, messages: &Messages| {
        let refer = |name: &String| json!({"$ref": format!("#/channels/{channel}/messages/{name}")});
        json!({
            "action": action,
            "channel": {"$ref": format!("#/channels/{channel}")},
            "messages": messages.keys().map(refer).collect::<Vec<_>>(),
        })
    };
    let mut watch = operation("send", "bus", &watched);
    watch["description"] =
        json!("Server-sent events. A credential and which kinds are watched stand in the request.");
    watch["bindings"] = json!({"http": {"method": "GET", "bindingVersion": "0.3.0"}});
    let operations = json!({
        "receiveEvents": operation("send", "websocket", &sent),
        "sendMessages": operation("receive", "websocket", &received),
        "watchBus": watch,
    });
    let listed = |all: &[&Messages]| -> Messages {
        let names = all.iter().flat_map(|messages| messages.keys());
        names.map(|name| (name.clone(), json!({"$ref": format!("#/components/messages/{name}")}))).collect()
    };
    json!({
        "asyncapi": "3.0.0",
        "info": {"title": "Talon's gateway", "version": env!("CARGO_PKG_VERSION")},
        "defaultContentType": "application/json",
        "channels": {
            "websocket": {"address": "/ws", "messages": listed(&[&sent, &received])},
            "bus": {"address": "/api/bus", "messages": listed(&[&watched])},
        },
        "operations": operations,
        "components": {
            "messages": sent.into_iter().chain(received).chain(watched).collect::<Messages>(),
            "schemas": schemas,
        },
    })
}

/// The messages of an enum of events, each with a prefix before its name.
fn messages(schemas: &Value, prefix: &str, events: &str, envelope: &Value) -> Messages {
    let variants = schemas[events]["oneOf"].as_array().into_iter().flatten();
    let named = variants.filter_map(|variant| {
        let kind = variant["properties"]["type"]["enum"][0].as_str()?;
        Some((format!("{prefix}{kind}"), message(kind, &variant["properties"]["payload"], envelope)))
    });
    named.collect()
}

/// What stands around an event: the part of an envelope's schema that is not the event.
fn envelope_of(schemas: &Value, name: &str) -> Value {
    let mut parts = schemas[name]["allOf"].as_array().into_iter().flatten();
    parts.find(|part| part.get("properties").is_some()).cloned().unwrap_or(Value::Null)
}

/// A message of this type around this payload, in this envelope.
fn message(kind: &str, payload: &Value, envelope: &Value) -> Value {
    let mut written = envelope.clone();
    written["properties"]["type"] = json!({"type": "string", "const": kind});
    written["properties"]["payload"] = payload.clone();
    if let Some(required) = written["required"].as_array_mut() {
        required.extend(["type".into(), "payload".into()]);
    }
    json!({"name": kind, "payload": written})
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
