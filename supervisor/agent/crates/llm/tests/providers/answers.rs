//! How the answers of each provider are read.

use serde_json::json;
use talon_llm::config::{Dialect, ProviderEntry, ProviderKind};
use talon_llm::model::{Answer, Arguments, Chunk, Finish, Message, ProviderError, Usage};

use crate::server::{Reply, Server};
use crate::{ask, build, entry, fixture, question};

async fn answered(kind: ProviderKind, path: &str) -> (Result<Answer, ProviderError>, Vec<Chunk>) {
    let reply =
        if kind == ProviderKind::Ollama { Reply::lines(fixture(path)) } else { Reply::events(fixture(path)) };
    let server = Server::start(vec![reply]).await;
    ask(&build(entry(kind, &server.url))).await
}

pub(crate) async fn answer(kind: ProviderKind, path: &str) -> Answer {
    answered(kind, path).await.0.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Name and arguments of each call; unreadable arguments are a text.
fn calls(answer: &Answer) -> Vec<(String, serde_json::Value)> {
    let arguments = |arguments: &Arguments| match arguments {
        Arguments::Object(object) => serde_json::Value::Object(object.clone()),
        Arguments::Unreadable(text) => json!(text),
    };
    answer.calls.iter().map(|call| (call.name.clone(), arguments(&call.arguments))).collect()
}

fn pair(name: &str, arguments: serde_json::Value) -> (String, serde_json::Value) {
    (name.to_owned(), arguments)
}

#[tokio::test]
async fn text_arrives_in_pieces_and_whole() {
    let (answer, chunks) = answered(ProviderKind::Openai, "openai/text.sse").await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.text, "Grüße aus Zürich 😀.");
    let texts = ["Grüße", " aus Zürich", " 😀."].map(|text| Chunk::Text(text.to_owned()));
    assert_eq!(chunks, texts);
    assert_eq!(answer.finish, Finish::Stop);
    assert_eq!(answer.model, "gpt-5-mini-2025-08-07");
    let usage = Usage {
        input_tokens: 82,
        cache_written_tokens: 0,
        cached_input_tokens: 64,
        output_tokens: 17,
        thinking_tokens: 5,
    };
    assert_eq!(answer.usage, Some(usage));
    assert_eq!(answer_text(ProviderKind::Openai, "openai/text-crlf.sse").await, "Hello there.");
}

async fn answer_text(kind: ProviderKind, path: &str) -> String {
    answer(kind, path).await.text
}

#[tokio::test]
async fn parallel_calls_are_put_together_from_fragments() {
    let (answer, chunks) = answered(ProviderKind::Openai, "openai/calls.sse").await;
    let answer = answer.expect("an answer");
    assert_eq!(
        calls(&answer),
        [
            pair("weather", json!({ "city": "Zürich" })),
            pair("notes_add", json!({ "text": "Schirm \"mitnehmen\"" }))
        ]
    );
    assert_eq!(answer.calls[0].id, "call_DdmO9pD3xa9XTPNJ32zg2hcA");
    assert_eq!(answer.finish, Finish::ToolCalls);
    assert_eq!(chunks, answer.calls.iter().cloned().map(Chunk::Call).collect::<Vec<_>>());
}

#[tokio::test]
async fn fragments_may_be_mixed_and_numbers_have_gaps() {
    let answer = answer(ProviderKind::Openai, "openai/calls-interleaved.sse").await;
    assert_eq!(
        calls(&answer),
        [pair("weather", json!({ "city": "Bern" })), pair("notes_add", json!({ "text": "x" }))]
    );
    assert_eq!(answer.usage, None, "it said nothing about it");
}

#[tokio::test]
async fn missing_ids_are_made_up_and_differ() {
    let server = Server::start(vec![Reply::events(fixture("openai/calls-without-ids.sse"))]).await;
    let provider = build(entry(ProviderKind::Openai, &server.url));
    let mut request = question("Which is warmer?");
    let first = provider.ask(&request, &mut |_| {}).await.expect("an answer");
    assert_eq!(
        calls(&first),
        [pair("weather", json!({ "city": "Bern" })), pair("weather", json!({ "city": "Genf" }))]
    );
    assert_eq!(first.finish, Finish::ToolCalls, "whatever it called it");
    request.messages.push(first.message());
    let again = provider.ask(&request, &mut |_| {}).await.expect("an answer");
    let mut ids: Vec<_> = first.calls.iter().chain(&again.calls).map(|call| call.id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4, "{ids:?}");
}

#[tokio::test]
async fn an_id_that_comes_again_is_replaced() {
    let server = Server::start(vec![Reply::events(fixture("openai/calls-interleaved.sse"))]).await;
    let provider = build(entry(ProviderKind::Openai, &server.url));
    let mut request = question("Again");
    let first = provider.ask(&request, &mut |_| {}).await.expect("an answer");
    assert_eq!(first.calls[0].id, "call_c");
    request.messages.push(first.message());
    let again = provider.ask(&request, &mut |_| {}).await.expect("an answer");
    assert!(again.calls.iter().all(|call| first.calls.iter().all(|old| old.id != call.id)), "{again:?}");
}

#[tokio::test]
async fn arguments_that_are_no_object_are_handed_on_as_text() {
    let answer = answer(ProviderKind::Openai, "openai/calls-broken.sse").await;
    assert_eq!(
        calls(&answer),
        [
            pair("weather", json!("{\"city\": Zürich}")),
            pair("weather", json!("[\"Bern\"]")),
            pair("notes_list", json!({}))
        ]
    );
    assert!(matches!(answer.calls[1].arguments, Arguments::Unreadable(_)));
}

// Promises: AGENT-13
#[tokio::test]
async fn a_call_that_the_limit_cut_off_is_never_given() {
    let (openai, chunks) = answered(ProviderKind::Openai, "openai/length-in-call.sse").await;
    let openai = openai.expect("an answer");
    assert_eq!(openai.finish, Finish::Length);
    // Its arguments can be read, but may be incomplete.
    assert_eq!(calls(&openai), [pair("weather", json!({ "city": "Bern" }))]);
    assert_eq!(openai.cut_call.as_deref(), Some("notes_add"));
    assert_eq!(openai.text, "I write it down.");
    let heard = chunks.iter().filter(|chunk| matches!(chunk, Chunk::Call(_))).count();
    assert_eq!(heard, 1, "{chunks:?}");
    let anthropic = answer(ProviderKind::Anthropic, "anthropic/length-in-call.sse").await;
    assert_eq!((anthropic.finish, anthropic.calls.len()), (Finish::Length, 0));
    assert_eq!(anthropic.cut_call.as_deref(), Some("notes_add"));
}

#[tokio::test]
async fn what_is_withheld_is_said_so() {
    for (kind, path, finish, text) in [
        (ProviderKind::Openai, "openai/filtered.sse", Finish::Filtered, "I"),
        (ProviderKind::Openai, "openai/refusal.sse", Finish::Refused, "I will not do that."),
        (ProviderKind::Anthropic, "anthropic/refusal.sse", Finish::Refused, "I"),
    ] {
        let answer = answer(kind, path).await;
        assert_eq!((answer.finish, answer.text.as_str()), (finish, text), "{path}");
    }
}

#[tokio::test]
async fn an_answer_that_comes_whole_is_read_as_well() {
    let server = Server::start(vec![Reply::json(200, fixture("openai/whole.json"))]).await;
    let (answer, _) = ask(&build(entry(ProviderKind::Openai, &server.url))).await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.text, "All at once.");
    assert_eq!(calls(&answer), [pair("weather", json!({ "city": "Bern" }))]);
    assert!(answer.usage.is_some());
}

#[tokio::test]
async fn anthropics_events_are_read() {
    let text = answer(ProviderKind::Anthropic, "anthropic/text.sse").await;
    assert_eq!(text.text, "Grüße 😀!");
    let usage = Usage {
        input_tokens: 132,
        cache_written_tokens: 7,
        cached_input_tokens: 100,
        output_tokens: 15,
        thinking_tokens: 0,
    };
    assert_eq!(text.usage, Some(usage), "with what came from the cache and went into it");
    let called = answer(ProviderKind::Anthropic, "anthropic/calls.sse").await;
    assert_eq!(called.text, "I look.");
    assert_eq!(calls(&called), [pair("weather", json!({ "city": "Zürich" })), pair("notes_list", json!({}))]);
    assert_eq!(called.calls[0].id, "toolu_01T1x1fJ34qAmk2tNTrN7Up6");
}

#[tokio::test]
async fn ollamas_lines_are_read() {
    let text = answer(ProviderKind::Ollama, "ollama/text.ndjson").await;
    assert_eq!((text.text.as_str(), text.model.as_str()), ("Grüße 😀.", "qwen3:8b"));
    assert_eq!(text.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), Some((26, 282)));
    let (called, chunks) = answered(ProviderKind::Ollama, "ollama/thinking-calls.ndjson").await;
    let called = called.expect("an answer");
    assert_eq!(
        calls(&called),
        [pair("weather", json!({ "city": "Bern" })), pair("weather", json!({ "city": "Genf" }))]
    );
    assert_eq!(called.finish, Finish::ToolCalls);
    assert_eq!(chunks[..2], ["Which ", "city?"].map(|text| Chunk::Thinking(text.to_owned())));
    assert_eq!(answer(ProviderKind::Ollama, "ollama/length.ndjson").await.finish, Finish::Length);
}

/// Asks twice, the second time with the first answer and a result for each of its calls. Returns the second
/// request.
async fn second_request(entry: ProviderEntry, server: &mut Server) -> serde_json::Value {
    let provider = build(entry);
    let mut request = question("What is the weather?");
    request.thinking = talon_llm::model::Thinking::Medium;
    let first = provider.ask(&request, &mut |_| {}).await.expect("an answer");
    request.messages.push(first.message());
    for call in &first.calls {
        request.messages.push(Message::Tool {
            call_id: call.id.clone(),
            content: "sunny".to_owned(),
            is_error: false,
        });
    }
    provider.ask(&request, &mut |_| {}).await.expect("an answer");
    server.asked().await;
    server.asked().await.body
}

#[tokio::test]
async fn thoughts_go_back_to_anthropic_as_they_came() {
    let mut server = Server::start(vec![Reply::events(fixture("anthropic/thinking-call.sse"))]).await;
    let body = second_request(entry(ProviderKind::Anthropic, &server.url), &mut server).await;
    let content = &body["messages"][1]["content"];
    assert_eq!(
        content[0],
        json!({
            "type": "thinking", "thinking": "Which city? Bern.",
            "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds",
        })
    );
    assert_eq!(content[1], json!({ "type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix" }));
    assert_eq!(content[2]["type"], "tool_use");
    assert!(body["thinking"].is_object(), "it thinks on: {body}");
}

#[tokio::test]
async fn thoughts_go_back_to_deepseek_with_its_calls() {
    let mut server = Server::start(vec![Reply::events(fixture("deepseek/thinking-call.sse"))]).await;
    let entry =
        ProviderEntry { dialect: Some(Dialect::Deepseek), ..entry(ProviderKind::Openai, &server.url) };
    let body = second_request(entry, &mut server).await;
    assert_eq!(body["messages"][2]["reasoning_content"], "The user wants the weather.", "{body}");
}

#[tokio::test]
async fn details_of_reasoning_go_back_to_openrouter_put_together() {
    let mut server = Server::start(vec![Reply::events(fixture("openrouter/reasoning.sse"))]).await;
    let entry =
        ProviderEntry { dialect: Some(Dialect::Openrouter), ..entry(ProviderKind::Openai, &server.url) };
    let body = second_request(entry, &mut server).await;
    assert_eq!(
        body["messages"][2]["reasoning_details"],
        json!([{
            "type": "reasoning.text", "text": "First this.", "format": "anthropic-claude-v1", "index": 0,
            "signature": "EqQBCgIYAhIM",
        }]),
        "{body}"
    );
}

#[tokio::test]
async fn deepseeks_cache_is_counted_by_its_own_name() {
    let answer = answer(ProviderKind::Openai, "deepseek/thinking-call.sse").await;
    let usage = Usage {
        input_tokens: 30,
        cache_written_tokens: 0,
        cached_input_tokens: 16,
        output_tokens: 20,
        thinking_tokens: 12,
    };
    assert_eq!(answer.usage, Some(usage));
}

#[tokio::test]
async fn a_provider_that_names_no_model_answers_with_the_one_that_was_asked() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = Server::start(vec![Reply::events(body)]).await;
    let answer = ask(&build(entry(ProviderKind::Openai, &server.url))).await.0.expect("an answer");
    assert_eq!((answer.text.as_str(), answer.model.as_str()), ("Hi", "a-model"));
}
