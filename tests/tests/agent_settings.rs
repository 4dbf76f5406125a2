//! What a session and a question want otherwise than the configuration: as options, as commands of a chat, and by
//! `talon session set`.

use std::process::Stdio;

use serde_json::{Value, json};
use talon_tests::ask::{AskResult, ask, with_agent};
use talon_tests::provider::Provider;
use talon_tests::{Builder, Supervisor, program};
use tokio::io::AsyncWriteExt as _;

async fn start() -> (Supervisor, Provider) {
    let provider = Provider::start([]).await;
    let supervisor = with_agent(Builder::new(), &provider, "", "").start().await;
    (supervisor, provider)
}

/// A chat with these lines; what it says to people.
async fn chat(supervisor: &Supervisor, args: &[&str], lines: &str) -> String {
    let mut command = tokio::process::Command::new(program("talon"));
    command.arg("--socket").arg(supervisor.socket()).arg("chat").args(args).env("NO_COLOR", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("talon starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(lines.as_bytes()).await.expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().await.expect("it ends");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn bodies(provider: &Provider) -> Vec<Value> {
    provider.questions()
}

async fn session(supervisor: &Supervisor, id: &str, change: &[&str]) -> Value {
    let args = [&["session", "set", id, "--output", "json"], change].concat();
    let set = AskResult::of(&supervisor.cli(&args).await);
    assert_eq!(set.code, Some(0), "{set:?}");
    set.said
}

// Promises: CLI-82
#[tokio::test(flavor = "multi_thread")]
async fn a_chat_sets_what_its_session_wants_and_shows_it() {
    let (supervisor, provider) = start().await;
    let lines = "/temperature 0.5\nOne\n/top_p 0.9\n/max_tokens 200\n/verbosity low\n/verbose on\n/metadata team=ops gone=x\n/metadata gone=\n\
                 /temperature\n/verbosity\n/verbose\n/metadata\nTwo\n/temperature default\n/temperature warm\n/temperature\nThree\n";
    let said = chat(&supervisor, &[], lines).await;
    assert!(said.contains("answers: temperature 0.5, top_p 0.9, at most 200 tokens"), "{said}");
    assert!(said.contains("how detailed answers are: low") && said.contains("\nteam=ops\n"), "{said}");
    assert!(said.contains("channels show arguments and results of calls: on"), "{said}");
    assert!(said.contains("a temperature is a number from 0 to 2"), "{said}");
    assert!(said.contains("answers: top_p 0.9, at most 200 tokens") && !said.contains("gone=x"), "{said}");
    let asked = bodies(&provider);
    let sampling = |body: &Value| (body["temperature"].clone(), body["top_p"].clone());
    let all: Vec<_> = asked.iter().map(sampling).collect();
    let expected = [(json!(0.5), Value::Null), (json!(0.5), json!(0.9)), (Value::Null, json!(0.9))];
    assert_eq!(all, expected);
    let is_short = |body: &Value| body["messages"].to_string().contains("short answers");
    assert_eq!(asked.iter().map(is_short).collect::<Vec<_>>(), [false, true, true]);
    supervisor.stop().await;
}

// Promises: CLI-82, AGENT-203
#[tokio::test(flavor = "multi_thread")]
async fn options_are_for_one_question_or_stay_with_the_session() {
    let (supervisor, provider) = start().await;
    let options = ["--verbosity", "high", "--metadata", "team=ops", "--verbose", "on"];
    let asked = ask(&supervisor, "One", &options).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    let id = asked.text("session_id").to_owned();
    let shown = session(&supervisor, &id, &["--temperature", "0.5", "--metadata", "ticket=OPS-7"]).await;
    assert_eq!(shown["metadata"], json!({ "team": "ops", "ticket": "OPS-7" }), "{shown}");
    assert_eq!(shown["verbose"], true, "{shown}");
    // The question's own verbosity did not stay.
    assert_eq!(
        (&shown["verbosity"], &shown["sampling"]["temperature"]),
        (&json!(""), &json!(0.5)),
        "{shown}"
    );
    let shown = session(&supervisor, &id, &["--top-p", "0.9", "--verbosity", "low"]).await;
    assert_eq!(shown["sampling"]["temperature"], 0.5, "what is not named stays: {shown}");
    let asked = ask(&supervisor, "Two", &["--session", &id, "--verbosity", "high"]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    ask(&supervisor, "Three", &["--session", &id]).await;
    let texts: Vec<String> = bodies(&provider).iter().map(|body| body["messages"].to_string()).collect();
    let wants = |word: &str| texts.iter().map(|text| text.contains(word)).collect::<Vec<_>>();
    assert_eq!(wants("detailed answers"), [true, true, false]);
    assert_eq!(wants("short answers"), [false, false, true]);
    let shown = session(&supervisor, &id, &["--reset", "--metadata", "team="]).await;
    assert_eq!((&shown["verbosity"], &shown["sampling"]), (&json!(""), &Value::Null), "{shown}");
    assert_eq!(
        (&shown["metadata"], &shown["verbose"]),
        (&json!({ "ticket": "OPS-7" }), &json!(false)),
        "{shown}"
    );
    let refused = ask(&supervisor, "Four", &["--temperature", "3"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let refused = supervisor.cli(&["session", "set", &id]).await;
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    supervisor.stop().await;
}
