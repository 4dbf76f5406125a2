//! The spans of a turn.

use std::collections::BTreeMap;

use talon_proto::agent::Span;

use super::setting::Setting;

// Promises: TRACE-19
#[tokio::test(start_paused = true)]
async fn a_turn_has_a_span_for_each_state_question_and_call_and_none_has_what_is_said() {
    let setting = Setting::new(
        "answers:\n- { when: { step: 1 }, call: [{ tool: files__read, arguments: { path: secret-path } }] }\n- { say: secret-answer }",
    );
    setting.tracer.set_sample(Some(1.0));
    assert_eq!(setting.answer("a secret-question").await, "secret-answer");
    let spans = setting.tracer.next().await.spans;
    assert!(!format!("{spans:?}").contains("secret"), "{spans:?}");
    let ids: BTreeMap<&[u8], &Span> = spans.iter().map(|span| (span.span_id.as_slice(), span)).collect();
    assert_eq!(ids.len(), spans.len(), "each has an id of its own");
    let above = |span: &Span| ids.get(span.parent_span_id.as_slice()).map(|span| span.name.clone());
    let of = |beginning: &str| -> Vec<&Span> {
        spans.iter().filter(|span| span.name.starts_with(beginning)).collect()
    };
    let turn = of("invoke_agent talon");
    assert!(turn.len() == 1 && turn[0].parent_span_id.is_empty(), "{spans:?}");
    let states = of("state ");
    assert!(states.len() >= 5, "{spans:?}");
    assert!(states.iter().all(|state| state.parent_span_id == turn[0].span_id), "{states:?}");
    let chats = of("chat one");
    assert_eq!(chats.len(), 2);
    for chat in &chats {
        assert!(above(chat).is_some_and(|name| name.starts_with("state ")), "{chat:?}");
        assert!(chat.client && chat.numbers["gen_ai.usage.input_tokens"] > 0, "{chat:?}");
    }
    let tools = of("execute_tool files.read");
    assert_eq!(tools.len(), 1);
    let calls = setting.host.calls.lock().clone();
    let parent = calls[0].trace_parent.clone().expect("the call continues the trace");
    let id: String = tools[0].span_id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(parent.contains(&id), "{parent} {id}");
}
