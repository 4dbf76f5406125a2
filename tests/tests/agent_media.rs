//! Images and other files through `talon ask` to a provider of our own, as they are on the wire.

use serde_json::{Value, json};
use talon_tests::Builder;
use talon_tests::ask::{AskResult, ask};
use talon_tests::provider::{Provider, ScriptedReply};

/// One pixel, as any program writes it.
const PNG: &[u8] = b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\x0dIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82";
/// The same in base64, made by another program.
const PNG_BASE64: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";

const PDF: &[u8] = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3 the words of a report";

/// An agent whose model has vision, or not.
fn with_model(builder: Builder, provider: &Provider, vision: bool) -> Builder {
    let url = provider.url();
    builder.config(&format!(
        "agent: {{ enabled: true }}\nmodels:\n  providers: {{ local: {{ kind: openai, base_url: \"{url}\" }} }}\n  catalog:\n    \
         local/test: {{ tier: mid, context_window: 128000, tools: true, vision: {vision}, free: true }}\n"
    ))
}

/// The parts of what the person says in a request, where it has parts.
fn parts(question: &Value) -> Vec<Value> {
    let messages = question["messages"].as_array().cloned().unwrap_or_default();
    messages
        .iter()
        .filter(|message| message["role"] == "user")
        .filter_map(|it| it["content"].as_array())
        .flatten()
        .cloned()
        .collect()
}

fn says(text: &str) -> ScriptedReply {
    ScriptedReply::Text(text.to_owned())
}

fn calls(tool: &str, arguments: Value) -> ScriptedReply {
    ScriptedReply::ToolCalls(vec![(tool.to_owned(), arguments)])
}

fn assert_answered(asked: &AskResult, text: &str) {
    assert_eq!((asked.code, asked.text("text")), (Some(0), text), "{asked:?}");
}

// Promises: AGENT-174
#[tokio::test]
async fn a_picture_is_an_image_part_of_the_request_byte_for_byte() {
    let provider = Provider::start([says("One pixel."), says("Still one.")]).await;
    let builder = Builder::new();
    let picture = builder.scratch().join("picture.png");
    std::fs::write(&picture, PNG).expect("the scratch directory is ours");
    let supervisor = with_model(builder, &provider, true).start().await;
    let file = picture.to_str().expect("our paths are text");
    let asked = ask(&supervisor, "What is in it?", &["--file", file]).await;
    assert_answered(&asked, "One pixel.");
    let questions = provider.questions();
    let sent = parts(&questions[0]);
    assert_eq!(sent[0], json!({ "type": "text", "text": "What is in it?" }), "{sent:?}");
    assert_eq!(sent[1]["type"], "image_url", "{sent:?}");
    assert_eq!(sent[1]["image_url"]["url"], format!("data:image/png;base64,{PNG_BASE64}"), "{sent:?}");
    // It stays in its session, and the next question shows it again.
    let session = asked.text("session_id");
    let again = ask(&supervisor, "And now?", &["--session", session]).await;
    assert_answered(&again, "Still one.");
    let questions = provider.questions();
    assert!(parts(&questions[1]).iter().any(|part| part["type"] == "image_url"), "{:?}", questions[1]);
    let shown = supervisor.cli(&["session", "show", session]).await;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("picture.png image/png, 1 × 1 pixels"), "{shown}");
    supervisor.stop().await;
}

// Promises: AGENT-174
#[tokio::test]
async fn without_a_model_that_looks_at_pictures_nothing_is_asked_and_the_exit_code_says_so() {
    let provider = Provider::start([says("It is blue.")]).await;
    let builder = Builder::new();
    let picture = builder.scratch().join("picture.png");
    std::fs::write(&picture, PNG).expect("the scratch directory is ours");
    let supervisor = with_model(builder, &provider, false).start().await;
    let file = picture.to_str().expect("our paths are text");
    let asked = ask(&supervisor, "What is in it?", &["--file", file]).await;
    assert_eq!((asked.code, asked.text("reason")), (Some(6), "no_vision"), "{asked:?}");
    assert!(asked.text("message").contains("vision: true"), "{asked:?}");
    assert_eq!(provider.questions().len(), 0);
    supervisor.stop().await;
}

/// The id of the file that a model is told of.
fn file_id(question: &Value) -> String {
    let messages = question["messages"].to_string();
    let at = messages.find("file-").expect("the model is told its id");
    messages[at..at + "file-".len() + 12].to_owned()
}

fn results(question: &Value) -> Vec<String> {
    let messages = question["messages"].as_array().cloned().unwrap_or_default();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.filter_map(|message| message["content"].as_str()).map(str::to_owned).collect()
}

// Promises: AGENT-168, AGENT-170
#[tokio::test]
async fn a_long_text_is_read_in_pages_and_comes_back_with_its_session() {
    let text: String = (0..60_000).map(|line| format!("line {line}\n")).collect();
    let offset = text.len() - 200;
    // Whatever it is asked, it reads the last page once and then answers.
    let provider = Provider::responding(move |question| match results(question).last() {
        Some(last) if last.contains("line 59999") && !asks_again(question) => says("It has 60,000 lines."),
        _ => calls("talon__read_attachment", json!({ "id": file_id(question), "offset": offset })),
    })
    .await;
    let builder = Builder::new();
    let path = builder.scratch().join("long.log");
    std::fs::write(&path, &text).expect("the scratch directory is ours");
    let supervisor = with_model(builder, &provider, false).start().await;
    let file = path.to_str().expect("our paths are text");
    let asked = ask(&supervisor, "What is in it?", &["--file", file]).await;
    assert_answered(&asked, "It has 60,000 lines.");
    let session = asked.text("session_id").to_owned();
    let questions = provider.questions();
    let told = questions[0]["messages"].to_string();
    let note = format!("{}: long.log, text/plain, {} bytes", file_id(&questions[0]), text.len());
    assert!(told.contains(&note) && !told.contains("line 59999"), "{told}");
    assert!(asked.said["notices"].to_string().contains("long.log"), "{asked:?}");

    let (directory, config) = (supervisor.scratch.join("exported"), supervisor.config().to_owned());
    let transfer = async |verb: &str| {
        let (directory, config) = (directory.to_str().expect("UTF-8"), config.to_str().expect("UTF-8"));
        let done = supervisor.cli(&[verb, directory, "--config", config]).await;
        assert!(done.status.success(), "{verb}: {done:?}");
    };
    transfer("export").await;
    let kept = std::fs::read_to_string(directory.join(format!("media/{session}.yaml")));
    assert!(kept.expect("it was exported").contains("line 59999"));
    let deleted = supervisor.cli(&["session", "delete", &session, "--yes"]).await;
    assert!(deleted.status.success(), "{deleted:?}");
    transfer("import").await;
    let again = ask(&supervisor, "Read it again", &["--session", &session]).await;
    assert_answered(&again, "It has 60,000 lines.");
    let questions = provider.questions();
    assert!(questions.len() >= 4, "it was read again: {}", questions.len());
    let last = results(questions.last().expect("it was asked"));
    assert!(last.iter().filter(|result| result.contains("line 59999")).count() >= 2, "{last:?}");
    supervisor.stop().await;
}

/// Whether the last thing said is the person's second question.
fn asks_again(question: &Value) -> bool {
    let messages = question["messages"].as_array().cloned().unwrap_or_default();
    messages.last().is_some_and(|last| last["role"] == "user" && last.to_string().contains("Read it again"))
}

// Promises: AGENT-169
#[tokio::test]
async fn a_plugin_is_passed_a_file_if_it_asks_and_the_operator_grants_it() {
    for (grant, passed) in [("context: [attachment]", true), ("", false)] {
        let builder = Builder::new().misbehave(&[], grant);
        let path = builder.scratch().join("report.pdf");
        std::fs::write(&path, PDF).expect("the scratch directory is ours");
        let provider = Provider::responding(|question| {
            if results(question).is_empty() {
                calls("misbehave__take_file", json!({ "file": file_id(question) }))
            } else {
                says("It is a report.")
            }
        })
        .await;
        let supervisor = with_model(builder, &provider, false).start().await;
        let file = path.to_str().expect("our paths are text");
        let asked = ask(&supervisor, "What is in it?", &["--file", file]).await;
        assert_answered(&asked, "It is a report.");
        let all = provider.bodies().concat();
        assert!(!all.contains("the words of a report") && !all.contains("JVBERi0xLjcK"), "{all}");
        let result = results(&provider.questions()[1]).concat();
        assert_eq!(result.contains("application/pdf") && result.contains("sha256"), passed, "{result}");
        assert_eq!(result.contains("passed: \"\""), !passed, "{result}");
        supervisor.stop().await;
    }
}
