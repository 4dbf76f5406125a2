//! What does not fit any more, and what stands for it.

use super::fakes::says;
use super::setting::Setting;
use crate::compress::{CompactError, compact};
use crate::context::Sections;

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
    setting.sections = Sections { recent: 200, ..Sections::default() };
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
    setting.sections = Sections { recent: 400, ..Sections::default() };
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
    setting.sections = Sections { recent: 200, ..Sections::default() };
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
    let done = compact(&environment.chain, &*setting.journal, "s", &Sections::default(), 2)
        .await
        .expect("compacted");
    assert_eq!((done.messages, done.summary.as_str()), (6, "they greeted"));
    assert!(done.tokens_after < done.tokens_before && done.pico_usd > 0, "{done:?}");
    assert_eq!(setting.journal.summary.lock().0, 6);
    let again = compact(&environment.chain, &*setting.journal, "s", &Sections::default(), 2)
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
    let error = compact(&setting.environment().chain, &*setting.journal, "s", &Sections::default(), 0)
        .await
        .expect_err("no model");
    assert!(
        matches!(&error, CompactError::Model(_)) && error.to_string().contains("stays as it was"),
        "{error}"
    );
    assert_eq!(setting.journal.summary.lock().0, 0);
}
