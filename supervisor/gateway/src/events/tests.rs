use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use talon_proto::agent::chunk::Kind;
use talon_proto::agent::{self, Approval};

use super::client_message::{ChannelMessage, ClientMessage, parse};
use super::*;

/// The founding documents' examples, verbatim.
const INBOUND: &str = include_str!("fixtures/inbound.json");
const TOOL_CALL: &str = include_str!("fixtures/tool_call.json");

fn payload(event: &ServerEvent) -> Value {
    serde_json::to_value(event).unwrap()["payload"].clone()
}

// Promises: GW-100
#[test]
fn the_founding_examples_are_read_and_written_unchanged() {
    let (id, message) = parse(INBOUND).unwrap();
    assert_eq!(id, "msg_abc123");
    let ClientMessage::ChannelMessage(message) = message else { panic!("{message:?}") };
    let sent: Value = serde_json::from_str(INBOUND).unwrap();
    let of_founding = ChannelMessage {
        channel: Some("telegram".to_owned()),
        sender_id: Some("user_12345".to_owned()),
        sender_name: Some("Orlando".to_owned()),
        text: sent["payload"]["text"].as_str().unwrap().to_owned(),
        ..ChannelMessage::default()
    };
    assert_eq!(message, of_founding);

    let read: Envelope = serde_json::from_str(TOOL_CALL).unwrap();
    let (written, sent): (Value, Value) =
        (serde_json::from_str(&read.to_json()).unwrap(), serde_json::from_str(TOOL_CALL).unwrap());
    assert_eq!(written, sent);
}

#[test]
fn a_call_and_its_result_name_one_id_and_arguments_keep_their_types() {
    let call = agent::ToolCall {
        call_id: "call_1".to_owned(),
        tool: "file_list".to_owned(),
        arguments: r#"{"path":"~/Desktop","recursive":false,"depth":7}"#.to_owned(),
        ..agent::ToolCall::default()
    };
    let result = agent::ToolResult {
        call_id: "call_1".to_owned(),
        tool: "file_list".to_owned(),
        success: true,
        output: "a.txt".to_owned(),
        duration_ms: 12,
        truncated: true,
        ..agent::ToolResult::default()
    };
    let call = chunk::events("S1", Kind::ToolCall(call)).remove(0);
    let result = chunk::events("S1", Kind::ToolResult(result)).remove(0);
    let (call, result) = (Envelope::now(call, 5), payload(&result));
    assert!(call.id.starts_with("tc_"), "{}", call.id);
    assert_eq!(result["id"], call.id.as_str());
    assert_eq!(payload(&call.event)["args"], json!({"path": "~/Desktop", "recursive": false, "depth": 7}));
    assert_eq!(payload(&call.event)["sessionId"], "sess_S1");
    assert_eq!(result["metadata"], json!({"executionTime": 12, "truncated": true}));
}

#[test]
fn an_end_has_the_founding_usage() {
    let done = agent::Done {
        usage: Some(agent::Usage { input_tokens: 7, output_tokens: 5, ..agent::Usage::default() }),
        provider: "local".to_owned(),
        model: "test".to_owned(),
        iteration: 2,
        ..agent::Done::default()
    };
    let end = payload(&chunk::events("S", Kind::Done(done)).remove(0));
    let usage = json!({"promptTokens": 7, "completionTokens": 5, "totalTokens": 12});
    let wanted = json!({"sessionId": "sess_S", "usage": usage, "providerId": "local", "model": "test", "iteration": 2});
    assert_eq!(end, wanted);
}

#[test]
fn a_confirmation_reads_as_founded_and_a_question_is_no_confirmation() {
    let approval = Approval {
        id: "a1".to_owned(),
        session_id: "S".to_owned(),
        plugin: "shell".to_owned(),
        action: "execute".to_owned(),
        args: [("command".to_owned(), "rm -rf node_modules".to_owned())].into(),
        state: "pending".to_owned(),
        digest: "d".to_owned(),
        ..Approval::default()
    };
    let request = payload(&translate::approval(approval.clone()));
    assert_eq!(request["text"], "⚠️ The assistant wants to run: shell.execute rm -rf node_modules");
    assert_eq!(request["actions"], json!(["Allow", "Deny"]));
    let decided = translate::approval(Approval { state: "denied".to_owned(), ..approval.clone() });
    assert_eq!(decided.type_name(), "confirmation.decided");
    let question = Approval { question: "Which?".to_owned(), choices: vec!["a".to_owned()], ..approval };
    let question = translate::approval(question);
    assert_eq!(
        (question.type_name(), payload(&question)["options"].clone()),
        ("clarification.request", json!(["a"]))
    );
}

#[test]
fn pieces_that_do_not_count_are_discarded_before_people_read_why() {
    let notice = agent::Notice { level: "warn".to_owned(), text: "fallback".to_owned(), discard_text: true };
    let types: Vec<_> = chunk::events("S", Kind::Notice(notice)).iter().map(ServerEvent::type_name).collect();
    assert_eq!(types, ["agent.response.discard", "agent.notice"]);
}

#[test]
fn what_is_no_message_gets_a_typed_error() {
    let deep = format!(r#"{{"id":"m","type":"resume","payload":{}1{}}}"#, "[".repeat(500), "]".repeat(500));
    for (text, reason, reply_to) in [
        ("nonsense", "malformed", None),
        ("[]", "malformed", None),
        (r#"{"id":"m","type":"resume"}"#, "malformed", None),
        (r#"{"id":"m","type":"resume","type":"x","payload":{}}"#, "malformed", None),
        (r#"{"id":"","type":"resume","payload":{}}"#, "malformed", None),
        (&deep, "malformed", None),
        (r#"{"id":"m","type":"agent.response","payload":{}}"#, "unknown_type", Some("m")),
        (r#"{"id":"m","type":"channel.message","payload":{}}"#, "bad_payload", Some("m")),
        (
            r#"{"id":"m","type":"channel.message","payload":{"text":"a","role":"system"}}"#,
            "bad_payload",
            Some("m"),
        ),
        (
            r#"{"id":"m","type":"resume","payload":{"cursors":[{"sessionId":"s","after":-1}]}}"#,
            "bad_payload",
            Some("m"),
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.reason, error.reply_to.as_deref()), (reason, reply_to), "{text:.80}");
        assert!(error.message.len() < 500);
    }
}

/// One event of each type.
fn one_of_each() -> Vec<ServerEvent> {
    let mut events: Vec<ServerEvent> = Vec::new();
    for kind in [
        Kind::Text(agent::Text::default()),
        Kind::Thinking(agent::Thinking::default()),
        Kind::Loop(agent::LoopState { phase: "planning".to_owned(), ..agent::LoopState::default() }),
        Kind::Notice(agent::Notice { discard_text: true, ..agent::Notice::default() }),
        Kind::Plan(agent::Plan::default()),
        Kind::SubagentStart(agent::SubagentStart::default()),
        Kind::SubagentResult(agent::SubagentResult::default()),
        Kind::ToolCall(agent::ToolCall::default()),
        Kind::ToolResult(agent::ToolResult::default()),
        Kind::ToolStream(agent::ToolStream::default()),
        Kind::ToolProgress(agent::ToolProgress { progress: f64::NAN, ..agent::ToolProgress::default() }),
        Kind::Approval(Approval { state: "pending".to_owned(), ..Approval::default() }),
        Kind::Approval(Approval { state: "denied".to_owned(), ..Approval::default() }),
        Kind::Approval(Approval {
            state: "pending".to_owned(),
            question: "?".to_owned(),
            ..Approval::default()
        }),
        Kind::Approval(Approval {
            state: "denied".to_owned(),
            question: "?".to_owned(),
            ..Approval::default()
        }),
        Kind::Done(agent::Done::default()),
        Kind::Error(agent::Error::default()),
    ] {
        events.extend(chunk::events("S", kind));
    }
    events
}

#[test]
fn every_event_is_written_under_its_type_and_read_back() {
    let listed: BTreeSet<_> = ServerEvent::TYPES.into_iter().collect();
    assert_eq!(listed.len(), ServerEvent::TYPES.len());
    for event in one_of_each() {
        let envelope = Envelope { sequence: Some(7), ..Envelope::now(event, 1) };
        let written: Value = serde_json::from_str(&envelope.to_json()).unwrap();
        assert_eq!(written["type"], envelope.event.type_name());
        assert!(listed.contains(envelope.event.type_name()));
        assert_eq!(serde_json::from_str::<Envelope>(&envelope.to_json()).unwrap(), envelope);
    }
    // The list is that of serde, too.
    for name in ServerEvent::TYPES {
        let unknown = serde_json::from_value::<ServerEvent>(json!({"type": name, "payload": 1})).unwrap_err();
        assert!(!unknown.to_string().contains("unknown variant"), "{name}: {unknown}");
    }
}

proptest! {
    #[test]
    fn no_text_of_a_client_panics(text in ".{0,200}") {
        let _read = parse(&text);
    }

    #[test]
    fn every_text_of_the_agent_arrives_as_it_is(content in any::<String>(), arguments in any::<String>()) {
        let piece = chunk::events("S", Kind::Text(agent::Text { text: content.clone(), whole: false })).remove(0);
        let said = payload(&piece)["content"].clone();
        prop_assert_eq!(said.as_str(), Some(content.as_str()));
        let call = agent::ToolCall { arguments: arguments.clone(), ..agent::ToolCall::default() };
        let args = payload(&chunk::events("S", Kind::ToolCall(call)).remove(0))["args"].clone();
        prop_assert!(args.is_object() || args == Value::String(arguments));
    }

    #[test]
    fn a_confirmation_is_bounded_whatever_is_to_run(value in "\\PC{0,2000}") {
        let args = [("a".to_owned(), value)].into();
        let approval = Approval { args, state: "pending".to_owned(), ..Approval::default() };
        let text = payload(&translate::approval(approval))["text"].as_str().unwrap().to_owned();
        prop_assert!(text.len() < 700, "{}", text.len());
    }
}
