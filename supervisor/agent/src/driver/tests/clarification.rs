//! Questions of the model to the person.

use std::sync::Arc;
use std::time::Duration;

use talon_llm::model::Message;

use super::setting::Setting;
use crate::driver::{Reply, TurnEnd};
use crate::journal::JournalEntry;

const ASKS: &str = "
answers:
  - { when: { results: [talon__ask_user] }, say: thank you }
  - call: [{ tool: talon__ask_user, arguments: { question: Which one?, choices: [red, blue] } }]
";

async fn run(setting: &Setting) -> TurnEnd {
    let mut spec = setting.spec("paint it");
    spec.can_answer = true;
    setting.run_spec(spec).await
}

fn reply(setting: &Setting) -> String {
    let request = setting.model.last();
    let mut results = request.messages.iter().filter_map(|message| match message {
        Message::Tool { content, .. } => Some(content.clone()),
        _ => None,
    });
    results.next_back().expect("a result")
}

// Promises: AGENT-85
#[tokio::test(start_paused = true)]
async fn the_person_is_asked_while_the_clock_stands_and_the_answer_goes_to_the_model() {
    let setting = Arc::new(Setting::new(ASKS));
    setting.confirm.parked.lock().insert("Which one?".to_owned());
    let answer = Reply::Answered("the red one".to_owned());
    setting.confirm.replies.lock().insert("Which one?".to_owned(), answer);
    let running = tokio::spawn({
        let setting = Arc::clone(&setting);
        async move { run(&setting).await }
    });
    // Far longer than a turn may take.
    tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
    assert!(!running.is_finished());
    assert_eq!(setting.heard.loops().last().map(String::as_str), Some("request_clarification deciding"));
    setting.confirm.parked.lock().clear();
    setting.confirm.told.notify_waiters();
    assert_eq!(running.await.expect("no panic").outcome, Ok("thank you".to_owned()));
    assert!(reply(&setting).contains("the red one"), "{}", reply(&setting));
    assert_eq!(setting.journal.kinds(), ["asked", "answered", "executed", "answered", "ended"]);
}

// Promises: AGENT-85
#[tokio::test(start_paused = true)]
async fn a_person_may_decline_and_one_who_never_answers_ends_the_turn() {
    let setting = Setting::new(ASKS);
    assert_eq!(run(&setting).await.outcome, Ok("thank you".to_owned()));
    assert!(reply(&setting).contains("decide by yourself"));

    let setting = Setting::new(ASKS);
    let expired = Reply::Expired(Duration::from_secs(86_400));
    setting.confirm.replies.lock().insert("Which one?".to_owned(), expired);
    let (word, sentence) = run(&setting).await.outcome.expect_err("no answer");
    assert_eq!(word, "expired");
    assert!(sentence.contains("got no answer within"), "{sentence}");
}

// Promises: AGENT-85
#[tokio::test(start_paused = true)]
async fn it_is_offered_only_where_somebody_can_answer() {
    let offered = |setting: &Setting| {
        let first = setting.model.asked.lock().first().cloned().expect("asked");
        first.tools.iter().any(|tool| tool.name == "talon__ask_user")
    };
    let setting = Setting::new(ASKS);
    run(&setting).await.outcome.expect("an answer");
    assert!(offered(&setting));

    let setting = Setting::new(ASKS);
    setting.answer("paint it").await;
    assert!(!offered(&setting) && setting.confirm.asked.lock().is_empty());
    assert!(reply(&setting).contains("there is no tool"), "{}", reply(&setting));

    let mut setting = Setting::new(ASKS);
    setting.budgets.clarifications = 0;
    run(&setting).await.outcome.expect("an answer");
    assert!(!offered(&setting));
}

// Promises: AGENT-85
#[tokio::test(start_paused = true)]
async fn after_a_restart_the_question_is_asked_again_and_an_answer_that_is_stored_is_not() {
    let setting = Setting::new(ASKS);
    run(&setting).await.outcome.expect("an answer");
    let entries = setting.journal.entries();
    for written in [2, 3] {
        let again = Setting::new(ASKS);
        *again.journal.entries.lock() = entries[..written].to_vec();
        let mut spec = again.spec("paint it");
        spec.caller.turn = 1;
        spec.resumes = Some(Setting::interrupted(&entries[..written]));
        assert_eq!(again.run_spec(spec).await.outcome, Ok("thank you".to_owned()), "{written}");
        assert_eq!(again.confirm.asked.lock().len(), usize::from(written == 2));
        assert!(matches!(entries[2].1, JournalEntry::CallsFinished(_)));
    }
}
