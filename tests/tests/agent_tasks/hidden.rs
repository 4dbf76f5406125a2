//! Tasks where not all tools fit: one is found by its words, one in another language, one is called although it is not
//! loaded, and one is pinned. The scripted model goes on only if its requests show what it needs.

use serde_json::{Value, json};
use talon_tests::ask::{ask, with_agent};
use talon_tests::provider::{Provider, ScriptedReply};
use talon_tests::{Builder, example, program};

/// The plugin marks it as always included.
const PINNED: &str = "test__destroy";

/// A task: what is asked, and what the model does with it.
struct Task {
    ask: &'static str,
    /// The tool that the task needs, with its arguments.
    tool: (&'static str, &'static str),
    /// What the model searches for; nothing: it calls the tool although it is not loaded.
    query: Option<&'static str>,
    /// What the answer has to have.
    expected: &'static str,
}

const TASKS: [Task; 3] = [
    Task {
        ask: "Mind that the bearing is oiled.",
        tool: ("notes__add", r#"{"text":"The bearing is oiled."}"#),
        query: Some("note a text"),
        expected: "kept as note 1",
    },
    Task {
        ask: "The pump squeaks: tell the mechanics.",
        tool: ("jira__create_issue", r#"{"title":"The pump squeaks"}"#),
        query: None,
        expected: "filed as #1",
    },
    Task {
        ask: "Was steht noch aus?",
        tool: ("jira__list_issues", "{}"),
        query: Some("offene Vorgänge zeigen"),
        expected: "The pump squeaks",
    },
];

/// What is missing in a request, if anything.
fn next(task: &Task, question: &Value) -> Result<ScriptedReply, String> {
    let messages = question["messages"].as_array().expect("a request has messages");
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let turn = messages.iter().rposition(|it| it["role"] == "user").unwrap_or_default();
    let results: Vec<String> = messages[turn..].iter().filter(|it| it["role"] == "tool").map(text).collect();
    let tools = question["tools"].as_array().cloned().unwrap_or_default();
    let is_offered = |name: &str| tools.iter().any(|tool| tool["function"]["name"] == name);
    let call =
        |name: &str, arguments: Value| Ok(ScriptedReply::ToolCalls(vec![(name.to_owned(), arguments)]));
    if !is_offered(PINNED) {
        return Err(format!("{PINNED} is pinned and not offered"));
    }
    let (name, arguments) = task.tool;
    let arguments: Value = serde_json::from_str(arguments).expect("arguments are JSON");
    let searches = usize::from(task.query.is_some());
    match results.len() {
        0 if is_offered(name) => Err(format!("{name} is offered at once")),
        0 => match task.query {
            Some(query) if is_offered("tools__search") => call("tools__search", json!({ "query": query })),
            Some(_) => Err("there is no search".to_owned()),
            None => call(name, arguments),
        },
        1 if searches == 1 => {
            if !results[0].contains(name) || !is_offered(name) {
                return Err(format!("{name} was not found: {}", results[0]));
            }
            call(name, arguments)
        }
        _ if !is_offered(name) => Err(format!("{name} was called and is not loaded")),
        _ => Ok(ScriptedReply::Text(results.last().cloned().unwrap_or_default())),
    }
}

/// Vectors of three meanings, as a model of vectors makes them in any language.
fn vectors(texts: &[Value]) -> ScriptedReply {
    let meanings = [["issues", "Vorgänge"], ["note", "Notiz"], ["file", "Datei"]];
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let text = text.as_str().unwrap_or_default();
            let near =
                |words: &[&str; 2]| if words.iter().any(|word| text.contains(word)) { 1.0 } else { 0.05 };
            let mut vector: Vec<f64> = meanings.iter().map(near).collect();
            // To show many is something else than to make one.
            vector.push(if text.contains("list") || text.contains("zeigen") { 1.0 } else { 0.05 });
            json!({ "index": index, "embedding": vector })
        })
        .collect();
    ScriptedReply::Raw(200, "application/json", json!({ "data": data }).to_string())
}

// Promises: AGENT-123
#[tokio::test(flavor = "multi_thread")]
async fn tasks_with_hidden_tools_are_done() {
    let provider = Provider::responding(|question| {
        if let Some(texts) = question["input"].as_array() {
            return vectors(texts);
        }
        let messages = question["messages"].as_array().expect("a request has messages");
        let asked =
            messages.iter().rev().find(|it| it["role"] == "user").and_then(|it| it["content"].as_str());
        match TASKS.iter().find(|task| Some(task.ask) == asked) {
            Some(task) => next(task, question).unwrap_or_else(ScriptedReply::Text),
            None => ScriptedReply::Text(format!("{asked:?} was not asked")),
        }
    })
    .await;
    let builder = Builder::new();
    let root = builder.scratch().path().display().to_string();
    let below = format!("config: {{ root: {root} }}\nsandbox: {{ fs: {{ read: [{root}] }} }}");
    let builder = builder
        .plugin("files", &example("files"), &[], &below)
        .plugin("code", &example("code-search"), &[], &below)
        .plugin("notes", &example("notes"), &[], "")
        .plugin("jira", &example("tracker"), &[], "")
        .plugin("test", &program("talon-test-tools"), &[], "");
    let agent = "  confirm: { default: never }\n  context: { tools: 500 }";
    let models = "  embeddings: { provider: local, model: meanings }";
    let supervisor = with_agent(builder, &provider, agent, models).start().await;
    // One session: what was loaded for a task displaces nothing that is pinned.
    let mut session = String::new();
    for task in &TASKS {
        let more: Vec<&str> = if session.is_empty() { vec![] } else { vec!["--session", &session] };
        let asked = ask(&supervisor, task.ask, &more).await;
        assert_eq!(asked.code, Some(0), "{}: {asked:?}", task.ask);
        assert!(asked.text("text").contains(task.expected), "{}: {asked:?}", task.ask);
        assert!(asked.text("text").contains("plugin_output"), "{}: {asked:?}", task.ask);
        session = asked.text("session_id").to_owned();
    }
    supervisor.stop().await;
}
