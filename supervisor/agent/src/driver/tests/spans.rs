//! The spans of a turn.

use std::collections::BTreeMap;

use talon_proto::agent::Span;

use super::setting::Setting;
use crate::context::ContextPlan;

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
    assert_eq!(tools[0].texts["gen_ai.tool.name"], "files.read");
    let calls = setting.host.calls.lock().clone();
    let parent = calls[0].trace.expect("the call continues the trace").header();
    let id: String = tools[0].span_id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(parent.contains(&id), "{parent} {id}");
}

// Promises: AGENT-171
#[tokio::test(start_paused = true)]
async fn a_summary_has_a_span_below_the_state_that_waited_for_it() {
    for (says, failed) in
        [("say: secret-summary", ""), ("fault: { class: request, message: not I }", "request")]
    {
        let script =
            format!("answers:\n  - when: {{ user: '(?s)\\[user\\]' }}\n    {says}\n  - say: hello\n");
        let mut setting = Setting::new(&script);
        setting.tracer.set_sample(Some(1.0));
        setting.plan = ContextPlan { recent: Some(200), ..ContextPlan::frugal() };
        for n in 0..6 {
            setting.answer(&format!("number {n} {}", "and more of it ".repeat(8))).await;
        }
        let spans = setting.tracer.next().await.spans;
        assert!(!format!("{spans:?}").contains("secret-summary"), "{spans:?}");
        let is_summary = |span: &&Span| span.texts.get("talon.purpose").is_some_and(|said| said == "summary");
        let summaries: Vec<&Span> = spans.iter().filter(is_summary).collect();
        assert!(!summaries.is_empty(), "{spans:?}");
        for summary in summaries {
            let above = spans.iter().find(|span| span.span_id == summary.parent_span_id).expect("a state");
            assert!(above.name.starts_with("state "), "{above:?}");
            assert!(summary.name.starts_with("chat ") && summary.client, "{summary:?}");
            assert_eq!(summary.error, !failed.is_empty(), "{summary:?}");
            assert_eq!(summary.texts.get("error.type").map_or("", String::as_str), failed, "{summary:?}");
            let counted = summary.numbers.get("gen_ai.usage.input_tokens").is_some_and(|tokens| *tokens > 0);
            assert_eq!(counted, failed.is_empty(), "{summary:?}");
        }
    }
}
