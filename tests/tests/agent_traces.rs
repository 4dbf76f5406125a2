//! The trace of one question: from `talon ask` through the agent's states, its models and tools to a plugin, as a
//! collector on this machine receives it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};
use talon_tests::ask::{ask, with_agent};
use talon_tests::collector::{Collector, CollectorMode, attribute};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, cli_with, example, repository, target};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Duration, timeout};

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
    assert_eq!(said("gen_ai.tool.name"), "hello.greet");
    let said = |name: &str| attribute(&turn.attributes, name);
    assert_eq!(
        (said("gen_ai.operation.name"), said("gen_ai.agent.name")),
        ("invoke_agent".into(), "talon".into())
    );
    assert!(!said("gen_ai.conversation.id").is_empty(), "{turn:?}");
    supervisor.stop().await;
}

/// A receiver made of other people's code. It ends when this is dropped.
struct ForeignReceiver {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    spans: Vec<Value>,
}

impl ForeignReceiver {
    async fn at(socket: &Path) -> Self {
        let mut child = Command::new(target().join("egress/python/bin/python"))
            .arg(repository().join("tests/otel/receiver.py"))
            .arg(socket)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("tests/scripts/deps.sh test installs it");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        assert_eq!(lines.next_line().await.expect("it starts").as_deref(), Some("0"));
        Self { _child: child, lines, spans: Vec::new() }
    }

    /// Waits until a span is there for which this holds.
    async fn wait_for(&mut self, what: &str, holds: impl Fn(&Value) -> bool) {
        while !self.spans.iter().any(&holds) {
            let line = timeout(Duration::from_secs(60), self.lines.next_line()).await;
            let Ok(Ok(Some(line))) = line else { panic!("no {what}: {line:?} {:#?}", self.spans) };
            self.spans.push(serde_json::from_str(&line).expect("a line is JSON"));
        }
    }
}

// Promises: AGENT-172
#[tokio::test]
async fn a_foreign_collector_knows_each_name_and_value_of_the_conventions() {
    let provider = Provider::responding(|question| {
        let messages = question["messages"].as_array().cloned().unwrap_or_default();
        let text = messages.iter().map(Value::to_string).collect::<String>();
        if text.contains("You write the running summary") {
            ScriptedReply::Text("They spoke of plants.".to_owned())
        } else if text.contains("Greet Ada") && messages.last().is_some_and(|last| last["role"] == "user") {
            ScriptedReply::ToolCalls(vec![("hello__greet".to_owned(), json!({ "name": "Ada" }))])
        } else {
            ScriptedReply::Text("Done.".to_owned())
        }
    })
    .await;
    let builder = Builder::new().plugin("hello", &example("hello"), &[], "");
    let socket = builder.scratch().join("otlp.sock");
    let mut receiver = ForeignReceiver::at(&socket).await;
    let traces = format!("traces: {{ endpoint: \"unix:{}\", sample: 1.0 }}", socket.display());
    let frugal = "  context: { profile: frugal }";
    let supervisor = with_agent(builder.config(&traces), &provider, frugal, "").start().await;
    let mut session = String::new();
    // So long that earlier turns no longer fit and are summarized.
    let long = "We talk about the garden and its plants. ".repeat(150);
    for turn in 0..6 {
        let more: Vec<&str> = if session.is_empty() { Vec::new() } else { vec!["--session", &session] };
        let asked = ask(&supervisor, &format!("Turn {turn}. {long}"), &more).await;
        assert_eq!(asked.code, Some(0), "{asked:?}");
        asked.text("session_id").clone_into(&mut session);
    }
    let asked = ask(&supervisor, "Greet Ada", &["--session", &session]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    receiver.wait_for("call", |span| span["name"] == "execute_tool hello.greet").await;
    receiver.wait_for("summary", |span| span["attributes"]["talon.purpose"] == "summary").await;
    let greeted =
        |span: &Value| span["name"] == "invoke_agent talon" && span["attributes"]["talon.tool_calls"] == 1;
    receiver.wait_for("turn with a call", greeted).await;

    for span in &receiver.spans {
        assert_eq!(span["strange"], json!([]), "{span:#}");
        let said = &span["attributes"];
        let (operation, name) = (&said["gen_ai.operation.name"], span["name"].as_str().expect("a name"));
        let named = |field: &str| {
            said[field].as_str().map(|field| format!("{} {field}", operation.as_str().unwrap_or_default()))
        };
        match operation.as_str() {
            Some("chat") => {
                assert_eq!(span["kind"], "SPAN_KIND_CLIENT", "{span:#}");
                assert_eq!(named("gen_ai.request.model").as_deref(), Some(name), "{span:#}");
                assert_eq!(said["gen_ai.provider.name"], "openai", "{span:#}");
                assert!(said["gen_ai.usage.input_tokens"].is_u64(), "{span:#}");
                assert!(said["gen_ai.usage.output_tokens"].is_u64(), "{span:#}");
                let reasons = said["gen_ai.response.finish_reasons"].as_array();
                assert!(reasons.is_some_and(|reasons| reasons[0].is_string()), "{span:#}");
            }
            Some("execute_tool") => {
                assert_eq!(span["kind"], "SPAN_KIND_INTERNAL", "{span:#}");
                assert_eq!(named("gen_ai.tool.name").as_deref(), Some(name), "{span:#}");
                assert_eq!(said["gen_ai.tool.type"], "function", "{span:#}");
            }
            Some("invoke_agent") => {
                assert_eq!(span["kind"], "SPAN_KIND_INTERNAL", "{span:#}");
                assert_eq!(named("gen_ai.agent.name").as_deref(), Some(name), "{span:#}");
                assert_eq!(said["gen_ai.conversation.id"].as_str(), Some(&*session), "{span:#}");
            }
            other => assert!(other.is_none(), "{span:#}"),
        }
    }
    // The summary's question stands below a state of the turn that waited for it.
    let summary = receiver.spans.iter().find(|span| span["attributes"]["talon.purpose"] == "summary");
    let parent = summary.expect("it was waited for")["parent"].clone();
    let is_state = |span: &Value| span["name"].as_str().is_some_and(|name| name.starts_with("state "));
    receiver.wait_for("state", |span| span["span"] == parent && is_state(span)).await;
    supervisor.stop().await;
}
