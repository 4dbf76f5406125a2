use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;

use talon_agent_settings::{ModelKeys, ProviderKeys, Settings, SettingsBundle, read_file};

use super::*;
use crate::config::{ProviderEntry, ProviderKind};
use crate::model::{Arguments, Chunk, Finish, Message, NOTE_BEGINS, ToolSpec};

fn script(text: &str) -> Scripted {
    Scripted::parse("scripted", "a test", text, Timeouts::default()).expect("a script")
}

fn user(text: &str) -> Request {
    Request { messages: vec![Message::User { text: text.to_owned() }], ..Request::default() }
}

async fn ask(scripted: &Scripted, request: &Request) -> Result<Answer, ProviderError> {
    scripted.ask(request, &mut |_| {}).await
}

async fn said(scripted: &Scripted, request: &Request) -> String {
    ask(scripted, request).await.expect("an answer").text
}

#[tokio::test]
async fn the_built_in_script_says_that_it_is_one() {
    let scripted =
        Scripted::load("scripted", None, Timeouts::default(), &SettingsBundle::default()).expect("built in");
    for text in ["hello", "What is the weather?"] {
        let answer = ask(&scripted, &user(text)).await.expect("an answer");
        assert!(answer.text.contains("scripted provider"), "{}", answer.text);
        assert_eq!(answer.model, "scripted");
    }
    scripted.probe().await.expect("always well");
}

#[tokio::test]
async fn answers_follow_turn_step_text_and_results() {
    let scripted = script(
        r#"
        model: weather
        answers:
          - when: { user: "(?i)weather", step: 1 }
            say: I look.
            call:
              - tool: weather
                arguments: { city: "Bern", for: "{{user}}" }
          - when: { results: [weather], result: "rain" }
            say: "Take an umbrella: {{result}}."
          - when: { results: [weather] }
            say: No umbrella.
          - when: { turn: 2 }
            say: The second question.
          - when: { tool: notes_add }
            say: I could write it down.
          - when: { model: other }
            say: Another model.
        "#,
    );
    let mut request = user("Which weather?");
    let first = ask(&scripted, &request).await.expect("an answer");
    assert_eq!((first.finish, first.model.as_str()), (Finish::ToolCalls, "scripted:weather"));
    let expected = json!({ "city": "Bern", "for": "Which weather?" });
    assert_eq!(first.calls[0].arguments, Arguments::Object(expected.as_object().expect("one").clone()));
    request.messages.push(first.message());
    let result = |text: &str| Message::Tool {
        call_id: first.calls[0].id.clone(),
        content: text.to_owned(),
        is_error: false,
    };
    let with = |text: &str| {
        let mut request = request.clone();
        request.messages.push(result(text));
        request
    };
    assert_eq!(said(&scripted, &with("rain {{user}}")).await, "Take an umbrella: rain {{user}}.");
    assert_eq!(said(&scripted, &with("sun")).await, "No umbrella.");
    let mut second = with("rain");
    second.messages.push(Message::User { text: "And then?".to_owned() });
    assert_eq!(said(&scripted, &second).await, "The second question.");
    let tool =
        ToolSpec { name: "notes_add".to_owned(), description: String::new(), parameters: json!({}).into() };
    assert_eq!(said(&scripted, &Request { tools: vec![tool], ..user("?") }).await, "I could write it down.");
    assert_eq!(said(&scripted, &Request { model: "other".to_owned(), ..user("?") }).await, "Another model.");
    let error = ask(&scripted, &user("nothing fits")).await.expect_err("no answer");
    assert_eq!(error.class, ErrorClass::Request);
    assert!(error.message.contains("turn 1, step 1, after \"nothing fits\""), "{error}");
}

#[tokio::test]
async fn a_note_of_the_agent_begins_no_turn() {
    let scripted =
        script("answers: [{ when: { user: weather, turn: 1, step: 2 }, say: 'Once more.' }, { say: 'No.' }]");
    let mut request = user("the weather?");
    request.messages.push(Message::Assistant { text: "Rain.".to_owned(), calls: Vec::new(), thoughts: None });
    request.messages.push(Message::User { text: format!("{NOTE_BEGINS}that is no JSON]") });
    assert_eq!(said(&scripted, &request).await, "Once more.");
}

#[tokio::test]
async fn it_streams_in_pieces_and_counts_the_same_each_time() {
    let scripted = script(
        "answers: [{ think: 'so', say: 'Grüße aus Bern', piece_chars: 5, call: [{ tool: t, raw: '{' }] }]",
    );
    let mut heard = Vec::new();
    let answer = scripted.ask(&user("1234567"), &mut |chunk| heard.push(chunk)).await.expect("an answer");
    let text = |text: &str| Chunk::Text(text.to_owned());
    assert_eq!(heard[..4], [Chunk::Thinking("so".to_owned()), text("Grüße"), text(" aus "), text("Bern")]);
    assert_eq!(heard[4], Chunk::Call(answer.calls[0].clone()));
    assert_eq!(answer.calls[0].arguments, Arguments::Unreadable("{".to_owned()));
    let usage = answer.usage.expect("counted");
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.thinking_tokens), (2, 5, 1));
    assert_eq!(ask(&scripted, &user("1234567")).await.expect("an answer"), answer);
}

#[tokio::test]
async fn faults_are_played_as_often_as_they_are_asked_for() {
    let scripted = script(
        r"
        answers:
          - times: 2
            fault: { class: rate_limit, status: 429, retry_after: 20s, message: slow down }
          - times: 1
            say: half of it
            fault: { class: network }
          - times: 1
            say: ''
          - times: 1
            call: [{ tool: a }, { tool: b }]
            finish: length
          - say: fine
        probes: [{ class: network }, { class: server }]
        ",
    );
    for _ in 0..2 {
        let error = ask(&scripted, &user("?")).await.expect_err("limited");
        assert_eq!((error.class, error.status), (ErrorClass::RateLimit, Some(429)));
        assert_eq!(error.retry_after, Some(Duration::from_secs(20)));
        assert_eq!(error.to_string(), "scripted: slow down");
    }
    let mut heard = 0;
    let half = scripted.ask(&user("?"), &mut |_| heard += 1).await.expect_err("broken off");
    assert_eq!((half.class, heard), (ErrorClass::Network, 1));
    assert_eq!(said(&scripted, &user("?")).await, "", "an empty answer is one");
    let cut = ask(&scripted, &user("?")).await.expect("an answer");
    assert_eq!((cut.calls.len(), cut.cut_call.as_deref()), (1, Some("b")));
    assert_eq!(said(&scripted, &user("?")).await, "fine");
    assert_eq!(scripted.probe().await.expect_err("first").class, ErrorClass::Network);
    assert_eq!(scripted.probe().await.expect_err("second").class, ErrorClass::Server);
    scripted.probe().await.expect("well again");
}

#[tokio::test(start_paused = true)]
async fn what_hangs_ends_at_its_timeout() {
    let scripted = script("answers: [{ when: { turn: 1 }, hang: true }, { say: 'Well', hang: true }]");
    let error = ask(&scripted, &user("?")).await.expect_err("no answer");
    assert_eq!(error.class, ErrorClass::Timeout);
    assert!(error.message.contains("timeouts.first_token"), "{error}");
    let mut second = user("?");
    second.messages.push(Message::User { text: "?".to_owned() });
    let error = ask(&scripted, &second).await.expect_err("half an answer");
    assert!(error.message.contains("timeouts.between"), "{error}");
}

#[tokio::test]
async fn an_answer_waits_until_it_is_told() {
    let scripted = Arc::new(script("answers: [{ wait_for: go, say: went }]"));
    let (to, mut from) = mpsc::unbounded_channel();
    let asking = tokio::spawn({
        let scripted = Arc::clone(&scripted);
        async move { scripted.ask(&user("?"), &mut |chunk| to.send(chunk).expect("heard")).await }
    });
    tokio::task::yield_now().await;
    assert!(from.try_recv().is_err(), "it waits");
    scripted.release("go");
    assert_eq!(asking.await.expect("no panic").expect("an answer").text, "went");
    assert_eq!(said(&scripted, &user("again")).await, "went");
}

#[tokio::test]
async fn an_answer_waits_for_a_pipe() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("go");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("a pipe");
    let scripted =
        Arc::new(script(&format!("answers: [{{ wait_for_pipe: '{}', say: went }}]", path.display())));
    let asking = tokio::spawn({
        let scripted = Arc::clone(&scripted);
        async move { ask(&scripted, &user("?")).await }
    });
    let writer = tokio::task::spawn_blocking(move || std::fs::write(path, "x"));
    assert_eq!(asking.await.expect("no panic").expect("an answer").text, "went");
    writer.await.expect("no panic").expect("written");
}

#[test]
fn a_script_that_cannot_be_played_is_refused_with_the_place() {
    for (text, said) in [
        ("answers: [{ say: a, shout: b }]", "shout"),
        ("answers: [{ say: a }, { when: { user: '(' } }]", "answer 2"),
        ("{}", "answers"),
        ("answers: [{ fault: { class: bored } }]", "bored"),
    ] {
        let error = Scripted::parse("scripted", "a.yaml", text, Timeouts::default()).err().expect("refused");
        let error = error.to_string();
        assert!(error.contains(said) && error.contains("a.yaml"), "{text}: {error}");
    }
    let path = Path::new("/nonexistent");
    let entry = ProviderEntry { file: Some(path.to_owned()), ..ProviderEntry::new(ProviderKind::Scripted) };
    let providers = ProviderKeys([("scripted".to_owned(), entry)].into());
    let models = ModelKeys { providers, ..ModelKeys::default() };
    let settings = Settings { models, ..Settings::default() };
    let (bundle, _) = SettingsBundle::collect(&settings, &|_| None, &read_file);
    let missing = Scripted::load("scripted", Some(path), Timeouts::default(), &bundle);
    let Err(ScriptError::File(error)) = missing else { panic!("there is no such file") };
    let message = error.to_string();
    assert!(message.starts_with("/nonexistent cannot be read"), "{message}");
}

#[tokio::test]
async fn a_script_may_be_json() {
    let scripted = script(r#"{ "answers": [ { "say": "JSON", "when": { "turn": 1 } } ] }"#);
    assert_eq!(said(&scripted, &user("?")).await, "JSON");
}
