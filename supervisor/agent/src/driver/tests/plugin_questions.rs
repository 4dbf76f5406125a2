//! Questions of plugins to the person in the middle of a call.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use talon_llm::model::Message;
use talon_proto::host::{ExecuteResponse, Outcome};
use talon_proto::plugin::InputRequest;

use super::fakes::{guarded, says};
use super::setting::Setting;
use crate::driver::{HostCall, HostError, Reply, TurnEnd};
use crate::journal::{JournalEntry, UNKNOWN};

const ADDS: &str = "
answers:
  - { when: { results: [notes__add] }, say: thank you }
  - call: [{ tool: notes__add, arguments: { text: milk } }]
";
const ASKED: &str = "In which list?";

/// A plugin that asks, and repeats the answer.
fn asks(call: HostCall) -> BoxFuture<'static, Result<ExecuteResponse, HostError>> {
    match &call.input_response {
        Some(reply) => says(&call, &format!("{} {}", reply.action, reply.content_json)),
        None => {
            let schema = r#"{"properties":{"list":{"type":"string"}}}"#.to_owned();
            let question = InputRequest { id: "q.1".to_owned(), schema };
            let response =
                ExecuteResponse { input_request: Some(question), ..guarded(&call, Outcome::Ok, ASKED) };
            Box::pin(async move { Ok(response) })
        }
    }
}

fn setting(reply: Option<Reply>) -> Setting {
    let setting = Setting::new(ADDS);
    setting.host.answers(asks);
    if let Some(reply) = reply {
        setting.confirm.replies.lock().insert(ASKED.to_owned(), reply);
    }
    setting
}

async fn run(setting: &Setting) -> TurnEnd {
    let mut spec = setting.spec("note milk");
    spec.can_answer = true;
    setting.run_spec(spec).await
}

fn result(setting: &Setting) -> String {
    let request = setting.model.last();
    let mut results = request.messages.iter().filter_map(|message| match message {
        Message::Tool { content, .. } => Some(content.clone()),
        _ => None,
    });
    results.next_back().expect("a result")
}

// Promises: AGENT-120
#[tokio::test(start_paused = true)]
async fn the_person_answers_while_the_clock_stands_and_the_call_continues() {
    let setting = Arc::new(setting(Some(Reply::Answered(r#"{"list":"food"}"#.to_owned()))));
    setting.confirm.parked.lock().insert(ASKED.to_owned());
    let running = tokio::spawn({
        let setting = Arc::clone(&setting);
        async move { run(&setting).await }
    });
    // Far longer than a turn may take.
    tokio::time::sleep(Duration::from_secs(24 * 60 * 60)).await;
    assert!(!running.is_finished());
    setting.confirm.parked.lock().clear();
    setting.confirm.told.notify_waiters();
    assert_eq!(running.await.expect("no panic").outcome, Ok("thank you".to_owned()));
    assert!(result(&setting).contains(r#"accept {"list":"food"}"#), "{}", result(&setting));
    let calls = setting.host.calls.lock().clone();
    assert!(calls.iter().all(|call| call.takes_input_requests));
    let sent = calls[1].input_response.clone().expect("the answer is another call");
    assert_eq!((calls.len(), sent.id.as_str()), (2, "q.1"));
    assert_eq!(
        setting.journal.kinds(),
        ["asked", "answered", "began", "parked", "began", "executed", "answered", "ended"]
    );
}

// Promises: AGENT-120
#[tokio::test(start_paused = true)]
async fn what_is_not_answered_is_declined_or_cancelled_and_the_model_learns_why() {
    for (reply, action, why) in [
        (Reply::Declined(String::new()), "decline", None),
        (Reply::Declined("not mine".to_owned()), "decline", Some("not mine")),
        (Reply::Expired(Duration::from_secs(590)), "cancel", Some("no answer in time")),
        (Reply::NotAsked("too many wait".to_owned()), "cancel", Some("too many wait")),
    ] {
        let setting = setting(Some(reply));
        assert_eq!(run(&setting).await.outcome, Ok("thank you".to_owned()));
        let result = result(&setting);
        assert!(result.contains(action), "{result}");
        assert!(why.is_none_or(|why| result.contains(why)), "{result}");
        assert_eq!(setting.heard.notices().iter().any(|notice| notice.level == "warn"), action == "cancel");
    }
}

// Promises: AGENT-120
#[tokio::test(start_paused = true)]
async fn where_no_person_can_answer_plugins_learn_it_at_once() {
    let setting = Setting::new(ADDS);
    setting.answer("note milk").await;
    assert!(setting.host.calls.lock().iter().all(|call| !call.takes_input_requests));
}

// Promises: AGENT-120
#[tokio::test(start_paused = true)]
async fn a_plugin_that_asks_without_end_is_given_up() {
    let setting = setting(Some(Reply::Answered("{}".to_owned())));
    setting.host.answers(|call| asks(HostCall { input_response: None, ..call }));
    assert_eq!(run(&setting).await.outcome, Ok("thank you".to_owned()));
    assert!(result(&setting).contains("20 times in one call"), "{}", result(&setting));
    assert_eq!(setting.confirm.asked.lock().iter().filter(|asked| *asked == ASKED).count(), 20);
}

// Promises: AGENT-121
#[tokio::test(start_paused = true)]
async fn after_a_restart_it_is_asked_again_and_nothing_is_made_twice() {
    let answered = || setting(Some(Reply::Answered(r#"{"list":"food"}"#.to_owned())));
    let first = answered();
    run(&first).await.outcome.expect("an answer");
    let entries = first.journal.entries();
    // Parked: it continues with the question. The answer was being sent: it is unknown what it did.
    for (written, asked, calls, says) in [(4, &[ASKED][..], 1, "accept"), (5, &[], 0, UNKNOWN)] {
        assert!(matches!(entries[3].1, JournalEntry::CallParked { .. }));
        let again = answered();
        *again.journal.entries.lock() = entries[..written].to_vec();
        let mut spec = again.spec("note milk");
        spec.caller.turn = 1;
        spec.can_answer = true;
        spec.resumes = Some(Setting::interrupted(&entries[..written]));
        assert_eq!(again.run_spec(spec).await.outcome, Ok("thank you".to_owned()), "{written}");
        // The call was approved before, and is not asked about again.
        assert_eq!(*again.confirm.asked.lock(), asked, "{written}");
        assert_eq!(again.host.calls.lock().len(), calls, "{written}");
        assert!(result(&again).contains(says), "{}", result(&again));
    }
}
