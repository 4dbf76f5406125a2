//! What does not fit any more, and what stands for it.

use super::fakes::says;
use super::setting::Setting;
use crate::compress::{CompactError, SummaryScope, compact};
use talon_llm::model::Message;
use talon_llm::route::router::Pins;
use talon_proto::host::{ExecuteResponse, Outcome};

use crate::context::{ContextPlan, Sections, handle};

fn scope(pins: &Pins) -> SummaryScope<'_> {
    SummaryScope { session: "s", pins, deadline: None }
}

// Promises: AGENT-30
#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_summarized_and_stays_so() {
    let script = "
answers:
  - when: { user: '(?s)\\[user\\]' }
    say: they spoke of numbers
  - say: '{{user}} indeed'
";
    let mut setting = Setting::new(script);
    setting.plan = ContextPlan { recent: Some(200), ..ContextPlan::frugal() };
    for n in 0..8 {
        setting.answer(&format!("number {n} {}", "and more of it ".repeat(8))).await;
    }
    let (gone, summary) = setting.journal.summary.lock().clone();
    assert!(gone > 0 && summary.text == "they spoke of numbers", "{gone} {summary:?}");
    let said = format!("{:?}", setting.model.last().messages);
    assert!(said.contains("they spoke of numbers") && !said.contains("number 0 "), "{said}");
    assert!(setting.heard.loops().contains(&"await_llm compressing".to_owned()));
    assert!(setting.journal.said().len() == 16, "what was summarized stays");
}

// Promises: AGENT-30
#[tokio::test(start_paused = true)]
async fn a_long_turn_is_summarized_within_itself_and_the_journal_keeps_all_of_it() {
    let calls: String = (0..8)
        .map(|n| format!("  - {{ times: 1, when: {{ tool: files__read }}, call: [{{ tool: files__read, arguments: {{ path: 'p{n}' }} }}] }}\n"))
        .collect();
    let script = format!(
        "answers:\n  - {{ when: {{ user: '(?s)\\[(user|assistant)\\]' }}, say: read some }}\n{calls}  - say: done\n"
    );
    let mut setting = Setting::new(&script);
    setting.plan = ContextPlan { recent: Some(400), ..ContextPlan::frugal() };
    setting
        .host
        .answers(|call| says(&call, &format!("{} {}", call.args["path"], "words of a file ".repeat(60))));
    assert_eq!(setting.answer("read all").await, "done");
    assert_eq!(setting.journal.summary.lock().0, 0, "the turn is the journal's as it was");
    let last = format!("{:?}", setting.model.last().messages);
    assert!(last.contains("read some") && last.contains("read all"), "{last}");
    let summaries = setting.model.asked.lock().iter().filter(|request| request.tools.is_empty()).count();
    assert!((1..8).contains(&summaries), "not before each question: {summaries}");
}

// Promises: AGENT-30
#[tokio::test(start_paused = true)]
async fn without_a_summary_the_question_is_asked_and_says_what_is_missing() {
    let script = "
answers:
  - when: { user: '(?s)\\[user\\]' }
    fault: { class: request, message: not I }
  - say: hello
";
    let mut setting = Setting::new(script);
    setting.plan = ContextPlan { recent: Some(200), ..ContextPlan::frugal() };
    for n in 0..6 {
        assert_eq!(setting.answer(&format!("number {n} {}", "and more of it ".repeat(8))).await, "hello");
    }
    assert!(setting.heard.notices().iter().any(|notice| notice.text.contains("could not be summarized")));
    assert!(format!("{:?}", setting.model.last().messages).contains("not summarized yet"));
}

// Promises: AGENT-30
#[tokio::test(start_paused = true)]
async fn a_session_is_compacted_but_for_its_latest_turns() {
    let script = "answers: [{ when: { user: '(?s)\\[user\\]' }, say: they greeted }, { say: hello }]";
    let setting = Setting::new(script);
    for n in 0..5 {
        setting.answer(&format!("number {n} {}", "and more of it ".repeat(20))).await;
    }
    let environment = setting.environment();
    let done =
        compact(&environment.chain, &*setting.journal, scope(&Pins::default()), &Sections::default(), 2)
            .await
            .expect("compacted");
    assert_eq!((done.messages, done.summary.as_str()), (6, "they greeted"));
    assert!(done.tokens_after < done.tokens_before && done.pico_usd > 0, "{done:?}");
    assert_eq!(setting.journal.summary.lock().0, 6);
    let again =
        compact(&environment.chain, &*setting.journal, scope(&Pins::default()), &Sections::default(), 2)
            .await
            .expect("nothing to do");
    assert_eq!((again.messages, again.tokens_before, again.pico_usd), (0, done.tokens_after, 0));
    assert_eq!(setting.answer("and now?").await, "hello");
    assert!(format!("{:?}", setting.model.last().messages).contains("they greeted"));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_summarizes_stays_as_it_was() {
    let script = "answers: [{ when: { user: '(?s)\\[user\\]' }, fault: { class: request } }, { say: hello }]";
    let setting = Setting::new(script);
    setting.answer("one").await;
    let error = compact(
        &setting.environment().chain,
        &*setting.journal,
        scope(&Pins::default()),
        &Sections::default(),
        0,
    )
    .await
    .expect_err("no model");
    assert!(
        matches!(&error, CompactError::Model(_)) && error.to_string().contains("stays as it was"),
        "{error}"
    );
    assert_eq!(setting.journal.summary.lock().0, 0);
}

fn pages(n: usize) -> String {
    (0..n).map(|n| format!("row {n} of the file\n")).collect()
}

/// The founding "never send full tool logs" holds for `frugal` alone.
// Promises: AGENT-64
#[tokio::test(start_paused = true)]
async fn a_model_sees_what_its_tools_said_whole_while_it_fits() {
    let script = "
answers:
  - { times: 1, when: { step: 1 }, call: [{ tool: files__read, arguments: { path: a } }] }
  - { times: 1, when: { step: 2 }, call: [{ tool: files__read, arguments: { path: b } }] }
  - { times: 1, when: { step: 3 }, call: [{ tool: files__read, arguments: { path: c } }] }
  - say: done
";
    let mut setting = Setting::new(script);
    setting.plan = ContextPlan::default();
    setting.host.answers(|call| says(&call, &format!("{} {}", call.args["path"], pages(400))));
    setting.answer("read all").await;
    let last = setting.model.last();
    let results: Vec<String> = last
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool { content, .. } => Some(content.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|content| content.matches("row ").count() == 400), "{results:?}");
    assert!(setting.heard.notices().is_empty(), "{:?}", setting.heard.notices());
}

// Promises: AGENT-65
#[tokio::test(start_paused = true)]
async fn what_is_shortened_is_said_and_can_be_read_on() {
    let script = "
answers:
  - { times: 1, when: { step: 1 }, call: [{ tool: files__read, arguments: { path: a } }] }
  - { times: 1, when: { tool: talon__read_more }, call: [{ tool: talon__read_more, arguments: { handle: HANDLE, offset: 5000 } }] }
  - say: done
";
    let block = format!("[plugin_output]\n{}\n[/plugin_output]", pages(400));
    let setting = Setting::new(&script.replace("HANDLE", &handle(&block)));
    setting.host.answers(move |_| {
        let response =
            ExecuteResponse { outcome: Outcome::Ok.into(), block: block.clone(), ..Default::default() };
        Box::pin(async move { Ok(response) })
    });
    assert_eq!(setting.answer("read it").await, "done");
    assert_eq!(setting.host.made().len(), 1, "the agent reads on in the session");
    let results = setting.heard.results();
    let page = &results[1].output;
    assert!(results[1].success && page.contains("· row 2"), "{page}");
    let structured: String = page.lines().filter_map(|line| line.strip_prefix("· {")).collect();
    assert!(structured.contains("\"offset\":5000") && structured.contains("\"next_offset\":"), "{page}");
    let second = setting.model.asked.lock()[1].clone();
    assert!(second.tools.iter().any(|tool| tool.name == "talon__read_more"));
    let first = setting.model.asked.lock()[0].clone();
    assert!(!first.tools.iter().any(|tool| tool.name == "talon__read_more"), "only when it is of use");
    let notices = setting.heard.notices();
    assert!(
        notices
            .iter()
            .any(|notice| notice.text.contains("talon.read_more") && notice.text.contains("frugal")),
        "{notices:?}"
    );
}

// Promises: AGENT-70
#[tokio::test(start_paused = true)]
async fn a_pin_holds_for_summaries_and_the_result_names_who_saw_the_text() {
    let script = "
answers:
  - when: { user: '(?s)\\[user\\]' }
    say: they spoke of numbers
  - say: '{{user}} indeed'
";
    let mut setting = Setting::with_second(script, script);
    setting.plan = ContextPlan { recent: Some(200), ..ContextPlan::frugal() };
    for n in 0..8 {
        let mut spec = setting.spec(&format!("number {n} {}", "and more of it ".repeat(8)));
        spec.pins = Pins { session: Some("scripted-two/two".to_owned()), ..Pins::default() };
        let end = setting.run_spec(spec).await;
        assert_eq!(end.models, ["scripted-two/two"]);
    }
    assert_eq!(setting.model.times(), 0, "the cheaper one is not asked for summaries");
    assert!(setting.journal.summary.lock().0 > 0);
    // Without a pin the operator's word for summaries counts.
    let mut spec = setting.spec(&"and more of it ".repeat(20));
    spec.summaries = Some("scripted-two/two".to_owned());
    let end = setting.run_spec(spec).await;
    assert_eq!(end.models, ["scripted-two/two", "scripted/one"]);
}
