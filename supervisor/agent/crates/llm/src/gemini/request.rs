//! The question.

use serde_json::{Map, Value, json};

use super::contents::contents;
use super::version;
use crate::model::{Request, ToolChoice};
use crate::wire::{joined_system, number, schema_in_words};

pub(super) fn body(request: &Request, provider: &str) -> Value {
    let mut body = Map::new();
    body.insert("contents".to_owned(), Value::Array(contents(request, provider)));
    // Models before version 3 take no form of the answer beside tools.
    let in_words = request.answer_schema.as_ref().filter(|_| !request.tools.is_empty());
    if let Some(text) = joined_system(&request.messages, in_words.map(schema_in_words)) {
        body.insert("systemInstruction".to_owned(), json!({ "parts": [{ "text": text }] }));
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters,
            })
        });
        body.insert("tools".to_owned(), json!([{ "functionDeclarations": tools.collect::<Value>() }]));
        let choice = match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!({ "mode": "NONE" })),
            ToolChoice::Required => Some(json!({ "mode": "ANY" })),
            ToolChoice::Tool(name) => Some(json!({ "mode": "ANY", "allowedFunctionNames": [name] })),
        };
        let config = choice.map(|choice| json!({ "functionCallingConfig": choice }));
        body.extend(config.map(|config| ("toolConfig".to_owned(), config)));
    }
    let config = generation_config(request);
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(config));
    }
    Value::Object(body)
}

fn generation_config(request: &Request) -> Map<String, Value> {
    let mut config = Map::new();
    if let Some(max) = request.max_output_tokens {
        config.insert("maxOutputTokens".to_owned(), json!(max));
    }
    for (field, value) in [("temperature", request.temperature), ("topP", request.top_p)] {
        if let Some(value) = value {
            config.insert(field.to_owned(), number(value));
        }
    }
    if !request.told_stops().is_empty() {
        config.insert("stopSequences".to_owned(), json!(request.told_stops()));
    }
    // The format's seeds have 32 bits.
    if let Some(seed) = request.seed.and_then(|seed| i32::try_from(seed).ok()) {
        config.insert("seed".to_owned(), json!(seed));
    }
    if let Some(schema) = request.answer_schema.as_ref().filter(|_| request.tools.is_empty()) {
        config.insert("responseMimeType".to_owned(), json!("application/json"));
        config.insert("responseJsonSchema".to_owned(), schema.clone());
    }
    if let Some(thinking) = version::thinking(&request.model, request.thinking) {
        config.insert("thinkingConfig".to_owned(), thinking);
    }
    config
}
