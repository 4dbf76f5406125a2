//! Files of a question that are no images.

use std::sync::Arc;

use talon_llm::model::{Message, NOTE_BEGINS, Request};
use talon_proto::plugin::{Action, Parameter};

use super::setting::Setting;
use crate::driver::*;
use crate::media::Attachment;

/// A turn whose message came with this file.
fn with_file(setting: &Setting, bytes: &[u8], name: &str) -> (TurnSpec, String) {
    let file = Attachment::of(bytes, name);
    setting.attachments.0.lock().push(("s".to_owned(), (file.clone(), Arc::from(bytes))));
    let id = file.id();
    (TurnSpec { attachments: vec![file], ..setting.spec("what is in it") }, id)
}

fn reading(calls: &[String]) -> String {
    let calls = calls.iter().enumerate().map(|(at, arguments)| {
        let step = at + 1;
        format!("- {{ when: {{ step: {step} }}, call: [{{ tool: talon__read_attachment, arguments: {arguments} }}] }}\n")
    });
    format!("answers:\n{}- {{ say: read }}", calls.collect::<String>())
}

fn results(request: &Request) -> Vec<&str> {
    let results = request.messages.iter().filter_map(|message| match message {
        Message::Tool { content, .. } => Some(content.as_str()),
        _ => None,
    });
    results.collect()
}

fn notes(request: &Request) -> Vec<&str> {
    let notes = request.messages.iter().filter_map(|message| match message {
        Message::User { text } if text.starts_with(NOTE_BEGINS) => Some(text.as_str()),
        _ => None,
    });
    notes.collect()
}

// Promises: AGENT-168
#[tokio::test(start_paused = true)]
async fn text_is_read_in_pages_as_data_and_the_note_says_how() {
    let lines: String = (0..20_000).map(|line| format!("{line};<tool_call>\n")).collect();
    let id = Attachment::of(lines.as_bytes(), "").id();
    let offset = lines.len() - 40;
    let setting = Setting::new(&reading(&[
        format!("{{ id: {id} }}"),
        format!("{{ id: {id}, offset: {offset} }}"),
        "{}".to_owned(),
        "{ id: file-000000000000 }".to_owned(),
    ]));
    let (spec, _) = with_file(&setting, lines.as_bytes(), "table.csv");
    assert_eq!(setting.run_spec(spec).await.outcome, Ok("read".to_owned()));
    let request = setting.model.last();
    let told = notes(&request);
    assert!(told[0].contains(&format!("{id}: table.csv, text/plain")), "{told:?}");
    assert!(told[0].contains("read it with talon__read_attachment"), "{told:?}");
    let results = setting.heard.results();
    let [first, last, list, unknown] = &results[..] else { panic!("{results:?}") };
    assert!(first.success && first.output.contains("0;") && first.output.contains("\"next_offset\":"));
    assert!(first.output.len() < lines.len() / 4, "a page has {} bytes", first.output.len());
    assert!(last.output.contains("19999;") && last.output.contains("\"next_offset\":null"), "{last:?}");
    // Marked, as what a tool says.
    assert!(!first.output.contains("<tool_call>"), "{}", &first.output[..200]);
    assert!(list.output.contains(&format!("{id}: table.csv")), "{list:?}");
    assert!(!unknown.success && unknown.output.contains("there is no file"), "{unknown:?}");
    let notices = setting.heard.notices();
    assert!(notices.iter().any(|notice| notice.text.contains("table.csv, text/plain")), "{notices:?}");
}

// Promises: AGENT-168
#[tokio::test(start_paused = true)]
async fn what_is_read_is_written_back_as_it_was() {
    let text = b"> quoted\nuse <tool_call> here\n".as_slice();
    let id = Attachment::of(text, "").id();
    let script = format!(
        "answers:\n- {{ when: {{ step: 1 }}, call: [{{ tool: talon__read_attachment, arguments: {{ id: {id} }} }}] }}\n\
         - {{ when: {{ step: 2 }}, call: [{{ tool: notes__add, arguments: {{ text: 'use <\u{b7}tool_call> there' }} }}] }}\n\
         - {{ say: written }}"
    );
    let setting = Setting::new(&script);
    let (spec, _) = with_file(&setting, text, "a.md");
    assert_eq!(setting.run_spec(spec).await.outcome, Ok("written".to_owned()));
    let results = setting.heard.results();
    assert!(
        results[0].output.contains("> quoted") && results[0].output.contains("<\u{b7}tool_call>"),
        "{results:?}"
    );
    let calls = setting.host.calls.lock().clone();
    assert_eq!(calls[0].args.get("text").map(String::as_str), Some("use <tool_call> there"), "{calls:?}");
}

// Promises: AGENT-168
#[tokio::test(start_paused = true)]
async fn binary_content_is_not_shown() {
    let pdf = b"%PDF-1.7\n\xff\xfe secret words \0".as_slice();
    let id = Attachment::of(pdf, "").id();
    let setting = Setting::new(&reading(&[format!("{{ id: {id} }}")]));
    let (spec, _) = with_file(&setting, pdf, "report.pdf");
    assert_eq!(setting.run_spec(spec).await.outcome, Ok("read".to_owned()));
    let request = setting.model.last();
    let all = format!("{:?}", request.messages);
    assert!(!all.contains("secret words"), "{all}");
    let results = results(&request);
    assert!(results[0].contains("application/pdf") && results[0].contains("is not text"), "{results:?}");
    let notices = setting.heard.notices();
    let said = notices.iter().any(|notice| notice.text.contains("report.pdf, application/pdf"));
    assert!(said, "{notices:?}");
}

// Promises: AGENT-168
#[tokio::test(start_paused = true)]
async fn without_files_nothing_is_offered_and_a_later_turn_reads_what_an_earlier_one_brought() {
    let setting = Setting::new("answers: [{ say: no }]");
    setting.answer("hello").await;
    let offered = |request: &Request| request.tools.iter().any(|tool| tool.name == "talon__read_attachment");
    assert!(!offered(&setting.model.last()));
    let (spec, id) = with_file(&setting, b"a;b\n", "a.csv");
    setting.run_spec(spec).await.outcome.expect("an answer");
    assert!(offered(&setting.model.last()));
    setting.answer("and now").await;
    assert!(offered(&setting.model.last()));
    assert!(notes(&setting.model.last()).iter().any(|note| note.contains(&id)));
    let spec = TurnSpec { no_tools: true, ..setting.spec("without") };
    setting.run_spec(spec).await.outcome.expect("an answer");
    assert!(!offered(&setting.model.last()));
}

fn pdf_actions() -> Vec<Action> {
    let file = Parameter {
        name: "file".to_owned(),
        r#type: "string".to_owned(),
        required: true,
        ..Parameter::default()
    };
    let action = |name: &str, asks: &[&str]| Action {
        name: name.to_owned(),
        parameters: vec![file.clone()],
        inject_context_args: asks.iter().map(|&name| name.to_owned()).collect(),
        ..Action::default()
    };
    vec![action("text", &["attachment"]), action("plain", &[])]
}

// Promises: AGENT-169
#[tokio::test(start_paused = true)]
async fn a_file_goes_to_an_action_that_asks_for_it_and_is_given_its_id() {
    let pdf = b"%PDF-1.7\n\xff\xfe".as_slice();
    let id = Attachment::of(pdf, "").id();
    let call = |step: usize, tool: &str, file: &str| {
        format!(
            "- {{ when: {{ step: {step} }}, call: [{{ tool: {tool}, arguments: {{ file: {file} }} }}] }}\n"
        )
    };
    let script = format!(
        "answers:\n{}{}{}{}- {{ say: read }}",
        call(1, "pdf__text", &id),
        call(2, "pdf__plain", &id),
        call(3, "pdf__text", "other.pdf"),
        call(4, "pdf__text", "file-000000000000"),
    );
    let setting = Setting::new(&script);
    setting.host.offers(vec![("pdf", pdf_actions())]);
    let (spec, _) = with_file(&setting, pdf, "report.pdf");
    assert_eq!(setting.run_spec(spec).await.outcome, Ok("read".to_owned()));
    let calls = setting.host.calls.lock().clone();
    let sent: Vec<Option<&String>> = calls.iter().map(|call| call.context.get("attachment")).collect();
    // The last call names a file that is not there: it is not made.
    assert_eq!(sent.len(), 3, "{calls:?}");
    assert_eq!((sent[1], sent[2]), (None, None));
    let sent: serde_json::Value = serde_json::from_str(sent[0].expect("it is passed")).expect("JSON");
    assert_eq!(sent["name"], "report.pdf");
    assert_eq!(sent["media_type"], "application/pdf");
    assert_eq!(sent["bytes"], pdf.len());
    assert_eq!(sent["base64"], "JVBERi0xLjcK//4=");
    // What a model chose and a person approves is the id.
    assert_eq!(calls[0].args.get("file"), Some(&id));
    let results = setting.heard.results();
    assert!(results[3].output.contains("there is no file"), "{results:?}");
}

// Promises: AGENT-169
#[tokio::test(start_paused = true)]
async fn a_file_that_is_too_large_for_a_call_is_not_passed_and_a_subagent_is_passed_none() {
    let large = vec![0; (2 << 20) + 1];
    let id = Attachment::of(&large, "").id();
    let script = format!(
        "answers:\n- {{ when: {{ step: 1 }}, call: [{{ tool: pdf__text, arguments: {{ file: {id} }} }}] }}\n- {{ say: read }}"
    );
    let setting = Setting::new(&script);
    setting.host.offers(vec![("pdf", pdf_actions())]);
    let (spec, _) = with_file(&setting, &large, "large.bin");
    setting.run_spec(spec).await.outcome.expect("an answer");
    assert!(setting.host.calls.lock().is_empty());
    let results = setting.heard.results();
    assert!(results[0].output.contains("too large for a call"), "{results:?}");

    let mut spec = setting.spec("what is in it");
    spec.caller.subagent = "ResearchAgent".to_owned();
    setting.run_spec(spec).await.outcome.expect("an answer");
    let request = setting.model.last();
    assert!(request.tools.iter().all(|tool| tool.name != "talon__read_attachment"));
}
