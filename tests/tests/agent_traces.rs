//! The trace of one question: from `talon ask` through the agent's states, its models and tools to a plugin, as a
//! collector on this machine receives it.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::json;
use talon_tests::ask::with_agent;
use talon_tests::collector::{Collector, CollectorMode, attribute};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, cli_with, example};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT: &str = "b7ad6b7169203331";
/// What the person says, and what the tool does: neither may be in a trace.
const SECRET: &str = "Greet Ada Lovelace";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// Promises: TRACE-19
#[tokio::test]
async fn a_question_is_one_trace_from_the_client_through_model_and_tool_to_the_plugin() {
    let call = ScriptedReply::ToolCalls(vec![("hello__greet".to_owned(), json!({ "name": "Ada Lovelace" }))]);
    let provider = Provider::start([call, ScriptedReply::Text("Done.".to_owned())]).await;
    let builder = Builder::new().plugin("hello", &example("hello"), &[], "");
    let socket = builder.scratch().join("otlp.sock");
    let collector = Collector::at(&socket, CollectorMode::Accept);
    let traces = format!("traces: {{ endpoint: \"unix:{}\" }}", socket.display());
    let supervisor = with_agent(builder.config(&traces), &provider, "", "").start().await;
    let parent = format!("00-{TRACE}-{CLIENT}-01");
    let socket = supervisor.socket();
    let line = ["--socket", socket.to_str().expect("our paths are text"), "ask", SECRET, "--output", "json"];
    let asked = cli_with(&line, &[("TRACEPARENT", &parent)]).await;
    assert!(asked.status.success(), "{asked:?}");

    let turn = collector.wait_for("invoke_agent talon", 1).await.remove(0);
    assert_eq!((hex(&turn.trace_id), hex(&turn.parent_span_id)), (TRACE.to_owned(), CLIENT.to_owned()));
    let chats = collector.wait_for("chat test", 2).await;
    let tool = collector.wait_for("execute_tool hello.greet", 1).await.remove(0);
    let call = collector.wait_for("call", 1).await.remove(0);
    let plugin = collector.wait_for("plugin", 1).await.remove(0);
    assert_eq!((&call.parent_span_id, &plugin.parent_span_id), (&tool.span_id, &call.span_id));

    let spans = collector.spans();
    let states: BTreeMap<&[u8], &Span> = spans
        .iter()
        .filter(|span| span.name.starts_with("state "))
        .map(|span| (span.span_id.as_slice(), span))
        .collect();
    assert!(states.len() >= 5, "{spans:?}");
    for span in &spans {
        assert_eq!(hex(&span.trace_id), TRACE, "{span:?}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{span:?}");
        assert!(!format!("{span:?}").contains("Lovelace"), "what is said is in no span: {span:?}");
    }
    for state in states.values() {
        assert_eq!(state.parent_span_id, turn.span_id, "{state:?}");
        assert!(!attribute(&state.attributes, "talon.event").is_empty(), "{state:?}");
    }
    let asking = states[chats[1].parent_span_id.as_slice()];
    // As the budgets, it is what was used when the state began.
    assert_eq!(attribute(&asking.attributes, "talon.iteration"), "1", "{asking:?}");
    assert!(!attribute(&asking.attributes, "talon.wall_time_left_ms").is_empty(), "{asking:?}");

    for chat in &chats {
        let said = |name: &str| attribute(&chat.attributes, name);
        assert_eq!(chat.kind(), SpanKind::Client);
        assert_eq!(
            (said("gen_ai.operation.name"), said("gen_ai.provider.name")),
            ("chat".into(), "openai".into())
        );
        assert_eq!(said("gen_ai.request.model"), "test");
        assert!(!said("gen_ai.usage.input_tokens").is_empty(), "{chat:?}");
        assert!(!said("gen_ai.usage.output_tokens").is_empty(), "{chat:?}");
    }
    let said = |name: &str| attribute(&tool.attributes, name);
    assert_eq!(said("gen_ai.operation.name"), "execute_tool");
    assert_eq!(said("gen_ai.tool.name"), "hello__greet");
    let said = |name: &str| attribute(&turn.attributes, name);
    assert_eq!(
        (said("gen_ai.operation.name"), said("gen_ai.agent.name")),
        ("invoke_agent".into(), "talon".into())
    );
    assert!(!said("gen_ai.conversation.id").is_empty(), "{turn:?}");
    supervisor.stop().await;
}
