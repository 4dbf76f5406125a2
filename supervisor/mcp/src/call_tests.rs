use super::*;
use crate::answer_meta::META_KEY;
use crate::patterns::Filter;
use crate::tools::of_plugin;
use serde_json::{Value, json};
use talon_proto::plugin::{Action, Media, PluginCapabilities};

fn offered(output_schema: &str) -> OfferedTool {
    let action =
        Action { name: "x".to_owned(), output_schema: output_schema.to_owned(), ..Action::default() };
    let capabilities = PluginCapabilities { actions: vec![action], ..PluginCapabilities::default() };
    of_plugin("p", &capabilities, &Filter::default()).remove(0)
}

fn answer(outcome: Outcome, structured: &str) -> ExecuteResponse {
    ExecuteResponse {
        outcome: outcome.into(),
        block: "[plugin_output]\nhello\n[/plugin_output]".to_owned(),
        content: "hello".to_owned(),
        structured_content: structured.to_owned(),
        reason: "timed_out".to_owned(),
        retryable: true,
        call_id: "c1".to_owned(),
        ..ExecuteResponse::default()
    }
}

fn on_wire(offered: &OfferedTool, answer: ExecuteResponse) -> Value {
    serde_json::to_value(result(offered, Structured::Plain, answer)).unwrap()
}

#[test]
fn a_model_gets_the_block_and_programs_get_the_reason() {
    let good = on_wire(&offered(""), answer(Outcome::Ok, ""));
    assert_eq!(good["content"][0]["text"], "[plugin_output]\nhello\n[/plugin_output]");
    assert_eq!((&good["isError"], good.get("structuredContent")), (&json!(false), None));
    assert_eq!(good["_meta"][META_KEY], json!({ "outcome": "ok", "call_id": "c1" }));
    for (outcome, word) in [
        (Outcome::ToolError, "tool_error"),
        (Outcome::Refused, "refused"),
        (Outcome::HostFault, "host_fault"),
    ] {
        let bad = on_wire(&offered(""), answer(outcome, "{}"));
        assert_eq!(bad["isError"], true);
        assert_eq!(bad["content"][0]["text"], "[plugin_output]\nhello\n[/plugin_output]");
        assert!(bad.get("structuredContent").is_none());
        let about = json!({ "outcome": word, "call_id": "c1", "reason": "timed_out", "retryable": true });
        assert_eq!(bad["_meta"][META_KEY], about);
    }
}

#[test]
fn structured_content_goes_only_to_those_who_were_told_its_form() {
    let given = |schema: &str, text: &str| {
        on_wire(&offered(schema), answer(Outcome::Ok, text)).get("structuredContent").cloned()
    };
    assert_eq!(given(r#"{"type": "object"}"#, r#"{"a": 1}"#), Some(json!({ "a": 1 })));
    for schema in ["", r#"{"type": "array"}"#, "no JSON"] {
        for text in [r#"{"a": 1}"#, "[1]", "no JSON"] {
            assert_eq!(given(schema, text), None, "{schema} {text}");
        }
    }
}

#[test]
fn a_broken_promise_is_an_error_with_the_text_kept() {
    let promised = offered(r#"{"type": "object", "required": ["a"]}"#);
    let kept = on_wire(&promised, answer(Outcome::Ok, r#"{"a": 1}"#));
    assert_eq!((&kept["isError"], &kept["structuredContent"]), (&json!(false), &json!({ "a": 1 })));
    for broken in ["", "{}", "[1]", "null"] {
        let told = on_wire(&promised, answer(Outcome::Ok, broken));
        assert_eq!(told["isError"], true, "{broken}");
        assert!(told["content"][0]["text"].as_str().unwrap().contains("hello"));
        assert!(told["content"][1]["text"].as_str().unwrap().contains("p__x promises"));
    }
}

// Promises: MCP-24
#[test]
fn structured_content_can_be_the_block_or_nothing() {
    let promised = offered(r#"{"type": "object", "required": ["a"]}"#);
    let block = json!({ "plugin_output": "[plugin_output]\nhello\n[/plugin_output]" });
    for (mode, schema, content) in [
        (Structured::Plain, Some(json!(["a"])), Some(json!({ "a": 1 }))),
        (Structured::Guarded, Some(json!(["plugin_output"])), Some(block)),
        (Structured::Off, None, None),
    ] {
        let tool = serde_json::to_value(mode.listed(&promised.tool)).unwrap();
        assert_eq!(tool.get("outputSchema").map(|schema| schema["required"].clone()), schema, "{mode:?}");
        let given = result(&promised, mode, answer(Outcome::Ok, r#"{"a": 1}"#));
        assert_eq!((given.structured_content, given.is_error), (content, Some(false)), "{mode:?}");
        let free = offered("");
        assert!(mode.listed(&free.tool).output_schema.is_none());
        assert!(result(&free, mode, answer(Outcome::Ok, r#"{"a": 1}"#)).structured_content.is_none());
    }
}

#[test]
fn media_stand_behind_the_block() {
    let image = Media { kind: "image".to_owned(), mime_type: "image/png".to_owned(), ..Media::default() };
    let given = ExecuteResponse { media: vec![image], ..answer(Outcome::Ok, "") };
    let given = on_wire(&offered(""), given);
    assert_eq!(
        (&given["content"][0]["type"], &given["content"][1]["type"]),
        (&json!("text"), &json!("image"))
    );
}

#[test]
fn progress_that_json_cannot_say_is_left_out() {
    let token = || ProgressToken(rmcp::model::NumberOrString::Number(1));
    let progress = |progress, total| Progress { progress, total, message: String::new() };
    assert!(progress_notification(token(), &progress(f64::NAN, None)).is_none());
    assert!(progress_notification(token(), &progress(f64::INFINITY, None)).is_none());
    let told = progress_notification(token(), &progress(0.5, Some(f64::NAN))).unwrap();
    assert_eq!((told.progress, told.total, told.message), (0.5, None, None));
}

#[test]
fn a_name_from_outside_is_told_back_bounded_and_escaped() {
    let error = unknown_tool(&format!("\u{1b}[2J{}", "x".repeat(1000)));
    assert!(error.message.len() < 250 && error.message.contains("\\u{1b}"), "{}", error.message);
}
