//! The wire-quirk suite: cases from the providers' published documents, as data in `fixtures/quirks/`. Each names
//! its document.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use talon_llm::config::{Dialect, ProviderEntry, ProviderKind};
use talon_llm::model::{
    Answer, Arguments, Chunk, DeferredTools, Message, ProviderError, Request, ShownImages, Thinking,
    ToolChoice, ToolSpec,
};

use crate::server::{Reply, Server};
use crate::{build_with, entry, question};

/// The fewest cases that the suite has: none is lost unnoticed.
const MIN_CASES: usize = 190;

/// The cases, by the provider whose documents they are from.
const FILES: [&str; 6] = ["openai", "compatible", "anthropic", "gemini", "ollama", "responses"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The document that says so.
    source: String,
    kind: ProviderKind,
    dialect: Option<Dialect>,
    #[serde(default)]
    request: Asked,
    /// What the first request has, by JSON pointer; `null` is what it does not have, `{ matches: … }` a pattern. `path` and `header:…` are those
    /// of HTTP.
    #[serde(default)]
    sent: BTreeMap<String, Value>,
    #[serde(default)]
    reply: Replied,
    answer: Option<Expected>,
    error: Option<ExpectedError>,
    /// What the next request has, which contains the answer and a result of each of its calls.
    #[serde(default)]
    again: BTreeMap<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Asked {
    model: Option<String>,
    /// Instead of the usual question.
    messages: Option<Vec<Message>>,
    no_tools: bool,
    /// Tools that are not on offer at once, for a provider that searches them; `find` is on offer, too.
    deferred: Vec<String>,
    no_calls: bool,
    thinking: Thinking,
    max_output_tokens: Option<u32>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    schema: Option<Value>,
    stable_messages: usize,
    /// Texts that stand for the bytes of images, by the images' digests.
    images: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Replied {
    status: Option<u16>,
    headers: BTreeMap<String, String>,
    /// Server-sent events, or the lines of Ollama; texts stand as they are.
    stream: Vec<Value>,
    /// One document.
    document: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    text: Option<String>,
    thinking: Option<String>,
    /// Name and arguments.
    calls: Option<Vec<(String, Value)>>,
    ids: Option<Vec<String>>,
    finish: Option<String>,
    usage: Option<Map<String, Value>>,
    no_usage: Option<bool>,
    cut_call: Option<String>,
    model: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedError {
    class: String,
    #[serde(default)]
    says: Option<String>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
}

fn cases() -> Vec<Case> {
    let read = |name: &&str| {
        let text = crate::fixture(&format!("quirks/{name}.yaml"));
        serde_saphyr::from_str::<Vec<Case>>(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    FILES.iter().flat_map(read).collect()
}

// Promises: AGENT-114, AGENT-122
#[tokio::test]
async fn every_published_quirk_is_met() {
    let mut wrong = String::new();
    for case in cases() {
        for problem in run(&case).await {
            let _written = writeln!(wrong, "{} ({}): {problem}", case.name, case.source);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn every_case_names_its_document_and_expects_something() {
    let cases = cases();
    assert!(cases.len() >= MIN_CASES, "{} cases", cases.len());
    let mut names = BTreeSet::new();
    for case in &cases {
        assert!(names.insert(&case.name), "{} stands there twice", case.name);
        assert!(case.source.starts_with("https://"), "{}", case.name);
        let expects = case.answer.is_some() || case.error.is_some();
        assert!(expects || !case.sent.is_empty() || !case.again.is_empty(), "{} expects nothing", case.name);
        // What is expected of the second request stands on an answer to the first.
        assert!(case.again.is_empty() || case.answer.is_some(), "{}", case.name);
    }
    let kinds: BTreeSet<_> = cases.iter().map(|case| case.kind.word()).collect();
    let covered = ProviderKind::all().filter(|kind| *kind != ProviderKind::Scripted);
    let missing: Vec<_> = covered.map(ProviderKind::word).filter(|word| !kinds.contains(word)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

async fn run(case: &Case) -> Vec<String> {
    let mut server = Server::start(vec![reply(case)]).await;
    let entry = ProviderEntry {
        dialect: case.dialect,
        tool_search: (!case.request.deferred.is_empty()).then_some(true),
        api_key_env: Some("KEY".to_owned()),
        ..entry(case.kind, &server.url)
    };
    let provider = build_with(entry, &|name| (name == "KEY").then(|| "sk-of-the-suite".to_owned()));
    let mut request = asked(&case.request);
    let mut chunks = Vec::new();
    let answer = provider.ask(&request, &mut |chunk| chunks.push(chunk)).await;
    let received = server.asked().await;
    let mut wrong = differences("sent", &case.sent, &received.body);
    for (name, expected) in &case.sent {
        let actual = match name.strip_prefix("header:") {
            Some(header) => received.header(header).map(str::to_owned),
            None if name == "path" => received.line().split(' ').nth(1).map(str::to_owned),
            None => continue,
        };
        if expected.as_str() != actual.as_deref() {
            wrong.push(format!("{name} is {actual:?} instead of {expected}"));
        }
    }
    match (&case.answer, &case.error, answer) {
        (Some(expected), _, Ok(answer)) => {
            wrong.extend(compare(expected, &answer, &chunks));
            if !case.again.is_empty() {
                continue_with(&mut request, &answer);
                let _second = provider.ask(&request, &mut |_| {}).await;
                wrong.extend(differences("sent again", &case.again, &server.asked().await.body));
            }
        }
        (_, Some(expected), Err(error)) => wrong.extend(compare_error(expected, &error)),
        (None, None, _) => {}
        (Some(_), _, Err(error)) => wrong.push(format!("an error instead of an answer: {error}")),
        (_, Some(_), Ok(answer)) => wrong.push(format!("an answer instead of an error: {answer:?}")),
    }
    wrong
}

fn asked(asked: &Asked) -> Request {
    let mut usual = question("What is the weather?");
    let named = |name: &str| ToolSpec {
        name: name.to_owned(),
        description: format!("does {name}"),
        parameters: json!({ "type": "object" }).into(),
    };
    let deferred = (!asked.deferred.is_empty()).then(|| {
        usual.tools.push(named("find"));
        DeferredTools {
            specs: asked.deferred.iter().map(|name| named(name)).collect(),
            search_tool: "find".to_owned(),
        }
    });
    Request {
        deferred,
        model: asked.model.clone().unwrap_or(usual.model),
        messages: asked.messages.clone().unwrap_or(usual.messages),
        tools: if asked.no_tools { Vec::new() } else { usual.tools },
        tool_choice: if asked.no_calls { ToolChoice::None } else { ToolChoice::Auto },
        thinking: asked.thinking,
        max_output_tokens: asked.max_output_tokens,
        temperature: asked.temperature,
        top_p: asked.top_p,
        stop: Vec::new(),
        seed: None,
        answer_schema: asked.schema.clone(),
        stable_messages: asked.stable_messages,
        images: shown(&asked.images),
        is_general_thinking: false,
    }
}

fn shown(images: &BTreeMap<String, String>) -> ShownImages {
    let mut shown = ShownImages::default();
    for (digest, bytes) in images {
        shown.add(digest.clone(), bytes.as_bytes().into());
    }
    shown
}

fn reply(case: &Case) -> Reply {
    let Replied { status, headers, stream, document } = &case.reply;
    let mut reply = match document {
        Some(document) => Reply::json(status.unwrap_or(200), document.to_string()),
        None if case.kind == ProviderKind::Ollama => {
            Reply::lines(stream.iter().map(|line| format!("{}\n", written(line))).collect::<String>())
        }
        None => Reply::events(stream.iter().map(event).collect::<String>()),
    };
    for (name, value) in headers {
        reply = reply.header(name, value);
    }
    reply
}

/// An event; a text that begins with a colon is a comment.
fn event(value: &Value) -> String {
    match value.as_str() {
        Some(comment) if comment.starts_with(':') => format!("{comment}\n\n"),
        _ => format!("data: {}\n\n", written(value)),
    }
}

fn written(event: &Value) -> String {
    event.as_str().map_or_else(|| event.to_string(), str::to_owned)
}

fn continue_with(request: &mut Request, answer: &Answer) {
    request.messages.push(answer.message());
    for call in &answer.calls {
        let content = "sunny".to_owned();
        request.messages.push(Message::Tool { call_id: call.id.clone(), content, is_error: false });
    }
    if answer.calls.is_empty() {
        request.messages.push(Message::User { text: "Go on.".to_owned() });
    }
}

fn differences(what: &str, expected: &BTreeMap<String, Value>, actual: &Value) -> Vec<String> {
    let pointers = expected.iter().filter(|(pointer, _)| pointer.starts_with('/'));
    let wrong =
        pointers.filter(|(pointer, value)| !fits(value, actual.pointer(pointer).unwrap_or(&Value::Null)));
    wrong
        .map(|(pointer, value)| {
            let found = actual.pointer(pointer).unwrap_or(&Value::Null);
            format!("{what}: {pointer} is {found} instead of {value}")
        })
        .collect()
}

/// Whether a value is the expected one; `{ matches: … }` is a regular expression.
fn fits(expected: &Value, actual: &Value) -> bool {
    match (expected["matches"].as_str(), actual.as_str()) {
        (Some(pattern), Some(text)) => regex::Regex::new(pattern).expect(pattern).is_match(text),
        _ => expected == actual,
    }
}

fn compare(expected: &Expected, answer: &Answer, chunks: &[Chunk]) -> Vec<String> {
    let thinking: String = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Thinking(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let arguments = |arguments: &Arguments| match arguments {
        Arguments::Object(object) => Value::Object(object.clone()),
        Arguments::Unreadable(text) => json!(text),
    };
    let calls: Vec<_> =
        answer.calls.iter().map(|call| (call.name.clone(), arguments(&call.arguments))).collect();
    let ids: Vec<_> = answer.calls.iter().map(|call| call.id.clone()).collect();
    let usage = json!(answer.usage);
    let mut wrong = Vec::new();
    let mut check = |what: &str, expected: Option<Value>, actual: Value| {
        if expected.as_ref().is_some_and(|expected| *expected != actual) {
            wrong.push(format!("{what} is {actual} instead of {}", expected.unwrap_or_default()));
        }
    };
    check("the text", expected.text.as_ref().map(|it| json!(it)), json!(answer.text));
    check("the thinking", expected.thinking.as_ref().map(|it| json!(it)), json!(thinking));
    check("the list of calls", expected.calls.as_ref().map(|it| json!(it)), json!(calls));
    check("the list of ids", expected.ids.as_ref().map(|it| json!(it)), json!(ids));
    check("the finish", expected.finish.as_ref().map(|it| json!(it)), json!(answer.finish));
    check("the cut call", expected.cut_call.as_ref().map(|it| json!(it)), json!(answer.cut_call));
    check("the model", expected.model.as_ref().map(|it| json!(it)), json!(answer.model));
    check("the absence of usage", expected.no_usage.map(|it| json!(it)), json!(answer.usage.is_none()));
    for (field, value) in expected.usage.iter().flatten() {
        check(&format!("usage.{field}"), Some(value.clone()), usage[field].clone());
    }
    wrong
}

fn compare_error(expected: &ExpectedError, error: &ProviderError) -> Vec<String> {
    let mut wrong = Vec::new();
    let class = json!(error.class);
    if class != json!(expected.class) {
        wrong.push(format!("the class is {class}: {error}"));
    }
    if expected.says.as_ref().is_some_and(|said| !error.message.contains(said.as_str())) {
        wrong.push(format!("it says {error}"));
    }
    let wait = expected.retry_after_ms.map(Duration::from_millis);
    if wait.is_some() && error.retry_after != wait {
        wrong.push(format!("the wait is {:?}", error.retry_after));
    }
    if error.message.contains("sk-of-the-suite") {
        wrong.push("the error shows the key".to_owned());
    }
    wrong
}
