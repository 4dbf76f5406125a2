//! The requests to each provider.

use serde_json::{Value, json};
use talon_llm::config::{Dialect, ProviderEntry, ProviderKind};
use talon_llm::model::{Arguments, Message, Request, Thinking, Thoughts, ToolCall, ToolChoice};

use crate::server::{Reply, Server};
use crate::{ask_for, build, entry, fixture, question};

async fn sent(entry: impl FnOnce(&str) -> ProviderEntry, request: &Request) -> Value {
    let mut server = Server::start(vec![Reply::json(500, "{}")]).await;
    let _failed = ask_for(&build(entry(&server.url)), request).await;
    server.asked().await.body
}

async fn sent_to(kind: ProviderKind, request: &Request) -> Value {
    sent(|url| entry(kind, url), request).await
}

async fn sent_in(dialect: Dialect, request: &Request) -> Value {
    sent(|url| ProviderEntry { dialect: Some(dialect), ..entry(ProviderKind::Openai, url) }, request).await
}

fn object(value: Value) -> Arguments {
    match value {
        Value::Object(object) => Arguments::Object(object),
        other => Arguments::Unreadable(other.to_string()),
    }
}

fn call(id: &str, name: &str, arguments: Arguments) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments }
}

fn result(id: &str, content: &str, is_error: bool) -> Message {
    Message::Tool { call_id: id.to_owned(), content: content.to_owned(), is_error }
}

/// A turn with two calls: one failed, one was unreadable.
fn transcript() -> Request {
    let mut request = question("What is the weather?");
    request.messages.push(Message::Assistant {
        text: "I look.".to_owned(),
        calls: vec![
            call("call_1", "weather", object(json!({ "city": "Bern" }))),
            call("functions.notes:1", "notes.add", Arguments::Unreadable("{oops".to_owned())),
        ],
        thoughts: None,
    });
    request.messages.push(result("call_1", "[plugin_output]sunny[/plugin_output]", false));
    request.messages.push(result("functions.notes:1", "the arguments are no JSON", true));
    request
}

#[tokio::test]
async fn openai_gets_messages_tools_and_options() {
    let mut request = transcript();
    request.max_output_tokens = Some(500);
    request.temperature = Some(0.2);
    let body = sent_to(ProviderKind::Openai, &request).await;
    assert_eq!(body["model"], "a-model");
    assert_eq!(body["stream"], true);
    assert_eq!(body["stream_options"], json!({ "include_usage": true }));
    assert_eq!(body["temperature"], json!(0.2));
    assert_eq!(body["max_tokens"], 500);
    assert_eq!(
        body["tools"][0],
        json!({ "type": "function", "function": {
            "name": "weather", "description": "the tool weather",
            "parameters": { "type": "object", "properties": { "city": { "type": "string" } } },
        }})
    );
    let messages = body["messages"].as_array().expect("messages");
    assert_eq!(messages[0], json!({ "role": "system", "content": "Be brief." }));
    let calls = &messages[2]["tool_calls"];
    assert_eq!(
        calls[0],
        json!({ "id": "call_1", "type": "function", "function": {
            "name": "weather", "arguments": "{\"city\":\"Bern\"}",
        }})
    );
    // A name and an id that it would reject, and arguments that some servers parse.
    assert_eq!(calls[1]["function"]["arguments"], "{\"unreadable_arguments\":\"{oops\"}");
    let plain = |value: &Value| {
        value.as_str().expect("text").chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    assert!(plain(&calls[1]["id"]) && plain(&calls[1]["function"]["name"]), "{calls}");
    assert_eq!(messages[3]["content"], "[plugin_output]sunny[/plugin_output]");
    assert_eq!(messages[4]["tool_call_id"], calls[1]["id"]);
    assert_eq!(messages[4]["content"], "Error: the arguments are no JSON");
}

#[tokio::test]
async fn anthropic_gets_results_in_one_message_and_the_system_apart() {
    let body = sent_to(ProviderKind::Anthropic, &transcript()).await;
    assert_eq!(body["system"], "Be brief.");
    assert_eq!(body["max_tokens"], 8192);
    assert_eq!(body["tools"][1]["input_schema"]["type"], "object");
    let messages = body["messages"].as_array().expect("messages");
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, [Some("user"), Some("assistant"), Some("user")]);
    assert_eq!(messages[1]["content"][0], json!({ "type": "text", "text": "I look." }));
    assert_eq!(
        messages[1]["content"][1],
        json!({ "type": "tool_use", "id": "call_1", "name": "weather", "input": { "city": "Bern" } })
    );
    let results = messages[2]["content"].as_array().expect("blocks");
    assert_eq!(results.len(), 2);
    assert_eq!(results[1]["is_error"], true);
    assert_eq!(results[1]["tool_use_id"], messages[1]["content"][2]["id"]);
}

/// Anthropic's documents: a block with `cache_control` ends a beginning that is cached, of which a request may
/// have four.
// Promises: AGENT-66
#[tokio::test]
async fn anthropic_is_asked_to_cache_what_stays_the_same() {
    let mut request = transcript();
    request.messages.insert(1, Message::System { text: "Remembered.".to_owned() });
    request.stable_messages = 1;
    let body = sent_to(ProviderKind::Anthropic, &request).await;
    let cached = json!({ "type": "ephemeral" });
    assert_eq!(
        body["system"],
        json!([
            { "type": "text", "text": "Be brief.", "cache_control": cached },
            { "type": "text", "text": "Remembered." },
        ])
    );
    let messages = body["messages"].as_array().expect("messages");
    let last = messages.last().and_then(|message| message["content"].as_array()).expect("results");
    assert_eq!(last.last().expect("a result")["cache_control"], cached);
    assert_eq!(body.to_string().matches("cache_control").count(), 2);
}

#[tokio::test]
async fn ollama_gets_objects_and_the_names_of_tools() {
    let mut request = transcript();
    request.max_output_tokens = Some(500);
    request.answer_schema = Some(json!({ "type": "object" }));
    let entry = |url: &str| ProviderEntry { num_ctx: Some(8192), ..entry(ProviderKind::Ollama, url) };
    let body = sent(entry, &request).await;
    assert_eq!(body["options"], json!({ "num_predict": 500, "num_ctx": 8192 }));
    assert_eq!(body["format"], json!({ "type": "object" }));
    assert_eq!(body["think"], false);
    assert_eq!(body["messages"][2]["tool_calls"][0]["function"]["arguments"], json!({ "city": "Bern" }));
    assert_eq!(body["messages"][3]["tool_name"], "weather");
}

#[tokio::test]
async fn thinking_is_asked_for_in_each_ones_words() {
    let mut request = question("?");
    request.max_output_tokens = Some(50_000);
    let with = |thinking| Request { thinking, ..request.clone() };
    let (off, high) = (with(Thinking::Off), with(Thinking::High));

    let openai = sent_in(Dialect::Openai, &high).await;
    assert_eq!(openai["reasoning_effort"], "high");
    assert_eq!((&openai["max_completion_tokens"], &openai["max_tokens"]), (&json!(50_000), &Value::Null));
    assert_eq!(sent_in(Dialect::Openai, &off).await["reasoning_effort"], Value::Null);

    let deepseek = sent_in(Dialect::Deepseek, &high).await;
    assert_eq!(deepseek["thinking"], json!({ "type": "enabled" }));
    let deepseek = sent_in(Dialect::Deepseek, &off).await;
    assert_eq!(deepseek["thinking"], json!({ "type": "disabled" }));

    assert_eq!(sent_in(Dialect::Openrouter, &high).await["reasoning"], json!({ "effort": "high" }));
    let vllm = sent_in(Dialect::Vllm, &off).await;
    assert_eq!(vllm["chat_template_kwargs"], json!({ "enable_thinking": false }));

    let named = |model: &str, request: &Request| Request { model: model.to_owned(), ..request.clone() };
    let older = sent_to(ProviderKind::Anthropic, &named("claude-haiku-4-5", &high)).await;
    assert_eq!(older["thinking"], json!({ "type": "enabled", "budget_tokens": 16_384 }));
    assert_eq!(older["max_tokens"], 50_000);
    let newer = sent_to(ProviderKind::Anthropic, &named("claude-opus-4-7", &high)).await;
    assert_eq!(newer["thinking"], json!({ "type": "adaptive" }));
    assert_eq!(newer["output_config"], json!({ "effort": "high" }));
    assert_eq!(sent_to(ProviderKind::Anthropic, &off).await["thinking"], Value::Null);

    assert_eq!(sent_to(ProviderKind::Ollama, &named("qwen3:8b", &high)).await["think"], true);
    assert_eq!(sent_to(ProviderKind::Ollama, &named("gpt-oss:20b", &high)).await["think"], "high");
}

#[tokio::test]
async fn a_form_of_the_answer_is_asked_for_in_each_ones_words() {
    let schema = json!({ "type": "object", "properties": { "score": { "type": "integer" } } });
    let request = Request { answer_schema: Some(schema.clone()), ..question("?") };
    let openai = sent_to(ProviderKind::Openai, &request).await;
    assert_eq!(openai["response_format"]["json_schema"]["schema"], schema);
    let deepseek = sent_in(Dialect::Deepseek, &request).await;
    assert_eq!(deepseek["response_format"], json!({ "type": "json_object" }));
    assert!(deepseek["messages"].to_string().contains("score"), "{deepseek}");
    assert_eq!(deepseek["messages"][0]["content"], "Be brief.", "instructions stay the first");
    let anthropic = sent_to(ProviderKind::Anthropic, &request).await;
    assert!(anthropic["system"].as_str().expect("text").contains("\"score\""), "{anthropic}");
}

#[tokio::test]
async fn thoughts_of_another_model_are_not_sent() {
    let mut request = transcript();
    request.thinking = Thinking::High;
    if let Some(Message::Assistant { thoughts, .. }) = request.messages.get_mut(2) {
        let data = json!([{ "type": "thinking", "thinking": "secret", "signature": "s" }]);
        *thoughts = Some(Thoughts { provider: "other".to_owned(), model: "a-model".to_owned(), data });
    }
    let anthropic = sent_to(ProviderKind::Anthropic, &request).await;
    assert!(!anthropic.to_string().contains("secret"), "{anthropic}");
    // The provider rejects calls without the thoughts before them.
    assert_eq!(anthropic["thinking"], Value::Null);
    let deepseek = sent_in(Dialect::Deepseek, &request).await;
    assert_eq!(deepseek["messages"][2]["reasoning_content"], "");
    let other = sent_to(ProviderKind::Openai, &request).await;
    assert!(!other.to_string().contains("secret"), "{other}");
}

#[tokio::test]
async fn base_urls_are_taken_as_people_write_them() {
    for (kind, suffix, path) in [
        (ProviderKind::Openai, "/v1", "/v1/chat/completions"),
        (ProviderKind::Openai, "/v1/", "/v1/chat/completions"),
        (ProviderKind::Openai, "", "/chat/completions"),
        (ProviderKind::Anthropic, "", "/v1/messages"),
        (ProviderKind::Anthropic, "/v1", "/v1/messages"),
        (ProviderKind::Anthropic, "/gateway/", "/gateway/v1/messages"),
        (ProviderKind::Ollama, "/", "/api/chat"),
        (ProviderKind::Ollama, "/api", "/api/chat"),
    ] {
        let mut server = Server::start(vec![Reply::events(fixture("openai/text.sse"))]).await;
        let provider = build(entry(kind, &format!("{}{suffix}", server.url)));
        let _answer = ask_for(&provider, &question("?")).await;
        assert_eq!(server.asked().await.line(), format!("POST {path} HTTP/1.1"), "{kind:?} {suffix}");
    }
}

#[tokio::test]
async fn messages_with_nothing_in_them_are_left_out() {
    let mut request = question("?");
    request.messages.push(Message::Assistant { text: String::new(), calls: vec![], thoughts: None });
    request.messages.push(Message::User { text: "Well?".to_owned() });
    for kind in [ProviderKind::Openai, ProviderKind::Anthropic, ProviderKind::Ollama] {
        let body = sent_to(kind, &request).await;
        assert!(!body["messages"].to_string().contains("assistant"), "{body}");
    }
}

#[tokio::test]
async fn anthropic_gets_the_tools_of_a_transcript_even_if_none_is_on_offer() {
    let request = Request { tools: Vec::new(), ..transcript() };
    let body = sent_to(ProviderKind::Anthropic, &request).await;
    let names: Vec<_> = body["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    let called = &body["messages"][1]["content"];
    assert_eq!(names.len(), 2);
    assert!(names.contains(&&called[1]["name"]) && names.contains(&&called[2]["name"]), "{body}");
    assert_eq!(body["tool_choice"], json!({ "type": "none" }));
}

// Promises: AGENT-82
#[tokio::test]
async fn a_question_that_may_call_nothing_says_so_to_each_provider() {
    let request = Request { tool_choice: ToolChoice::None, ..transcript() };
    let body = sent_to(ProviderKind::Openai, &request).await;
    assert_eq!((&body["tool_choice"], body["tools"].is_array()), (&json!("none"), true));
    let body = sent_to(ProviderKind::Anthropic, &request).await;
    assert_eq!((&body["tool_choice"], body["tools"].is_array()), (&json!({ "type": "none" }), true));
    let body = sent_to(ProviderKind::Ollama, &request).await;
    assert!(body.get("tools").is_none(), "it knows no such choice: {body}");
    assert!(sent_to(ProviderKind::Openai, &transcript()).await.get("tool_choice").is_none());
}

// Promises: GW-164
#[tokio::test]
async fn a_question_that_has_to_call_says_so_to_each_provider_that_has_a_word_for_it() {
    let some = Request { tool_choice: ToolChoice::Required, ..transcript() };
    let one = Request { tool_choice: ToolChoice::Tool("weather".to_owned()), ..transcript() };
    let choice = async |kind, request: &Request| sent_to(kind, request).await["tool_choice"].clone();
    assert_eq!(choice(ProviderKind::Openai, &some).await, "required");
    assert_eq!(choice(ProviderKind::Anthropic, &some).await, json!({ "type": "any" }));
    let named = json!({ "type": "function", "function": { "name": "weather" } });
    assert_eq!(choice(ProviderKind::Openai, &one).await, named);
    assert_eq!(choice(ProviderKind::Anthropic, &one).await, json!({ "type": "tool", "name": "weather" }));
    let body = sent_to(ProviderKind::Ollama, &some).await;
    assert!(body["tools"].is_array() && body.get("tool_choice").is_none(), "it has no word for it: {body}");
}

// Promises: GW-250
#[tokio::test]
async fn a_stop_and_a_seed_are_told_in_each_ones_words() {
    let mut request = question("Count");
    (request.stop, request.seed) = (vec!["END".to_owned(), "\n".to_owned()], Some(7));
    let both = json!(["END", "\n"]);
    let openai = sent_to(ProviderKind::Openai, &request).await;
    assert_eq!((&openai["stop"], &openai["seed"]), (&both, &json!(7)));
    let mistral = sent_in(Dialect::Mistral, &request).await;
    assert_eq!((&mistral["random_seed"], &mistral["seed"]), (&json!(7), &Value::Null));
    let deepseek = sent_in(Dialect::Deepseek, &request).await;
    assert_eq!((&deepseek["stop"], &deepseek["seed"]), (&both, &Value::Null));
    let anthropic = sent_to(ProviderKind::Anthropic, &request).await;
    assert_eq!(anthropic["stop_sequences"], json!(["END"]), "blanks alone are refused there");
    let gemini = &sent_to(ProviderKind::Gemini, &request).await["generationConfig"];
    assert_eq!((&gemini["stopSequences"], &gemini["seed"]), (&both, &json!(7)));
    let ollama = &sent_to(ProviderKind::Ollama, &request).await["options"];
    assert_eq!((&ollama["stop"], &ollama["seed"]), (&both, &json!(7)));
    // Where the model thinks, a stop would end some thoughts.
    request.thinking = Thinking::High;
    assert_eq!(sent_to(ProviderKind::Openai, &request).await["stop"], Value::Null);
}
