//! What a plugin is shown of a conversation: what its action asks for and the operator grants.

use serde_json::{Value, json};
use talon_tests::Builder;
use talon_tests::ask::{ask, with_agent};
use talon_tests::provider::{Provider, ScriptedReply};

fn whoami() -> ScriptedReply {
    ScriptedReply::ToolCalls(vec![("misbehave__whoami".to_owned(), json!({}))])
}

fn says(text: &str) -> ScriptedReply {
    ScriptedReply::Text(text.to_owned())
}

/// What the plugin was given, as it says itself, in the latest result of a question.
fn given(provider: &Provider) -> String {
    let question = provider.questions().pop().expect("it was asked");
    let messages = question["messages"].as_array().expect("messages").clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.filter_map(|message| message["content"].as_str()).next_back().expect("a result").to_owned()
}

// Promises: AGENT-97
#[tokio::test]
async fn a_plugin_is_shown_what_it_asks_for_and_is_granted() {
    let provider = Provider::start([whoami(), says("You are Ada."), whoami(), says("Still Ada.")]).await;
    let builder = Builder::new().misbehave(&[], "context: [task, conversation]");
    let confirm = "  confirm: { rules: [{ tool: misbehave.whoami, ask: never }] }\n";
    let supervisor = with_agent(builder, &provider, confirm, "").start().await;
    let first = ask(&supervisor, "Who am I?", &[]).await;
    assert_eq!(first.code, Some(0), "{first:?}");
    let shown = given(&provider);
    assert!(shown.contains(r#""task": "Who am I?""#) && !shown.contains("conversation"), "{shown}");
    let second = ask(&supervisor, "And now?", &["--session", first.text("session_id")]).await;
    assert_eq!(second.code, Some(0), "{second:?}");
    let shown = given(&provider);
    assert!(shown.contains(r#""task": "And now?""#), "{shown}");
    for part in ["Who am I?", "You are Ada.", "left_out"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // A model cannot set them: they are no arguments of the tool.
    let tools = provider.questions()[0]["tools"].as_array().expect("tools").clone();
    let whoami =
        tools.iter().find(|tool| tool["function"]["name"] == "misbehave__whoami").expect("it is offered");
    assert_eq!(whoami["function"]["parameters"]["properties"], json!({}));

    let shown = supervisor.cli(&["plugin", "show", "misbehave"]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("task: given to whoami"), "{shown}");
    assert!(shown.contains("session_id: asked for by whoami; not granted"), "{shown}");
    let json = supervisor.cli(&["plugin", "show", "misbehave", "--output", "json"]).await;
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["settings"]["context"], json!(["conversation", "task"]));
    supervisor.stop().await;
}

// Promises: AGENT-97
#[tokio::test]
async fn by_default_a_plugin_is_shown_nothing() {
    let provider = Provider::start([whoami(), says("Nobody.")]).await;
    let confirm = "  confirm: { rules: [{ tool: misbehave.whoami, ask: never }] }\n";
    let supervisor = with_agent(Builder::new().misbehave(&[], ""), &provider, confirm, "").start().await;
    let asked = ask(&supervisor, "Who am I?", &[]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert!(!given(&provider).contains("Who am I?"));
    supervisor.stop().await;
}
