//! Where limits end a turn.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use talon_proto::agent::chunk::Kind;

use talon_llm::model::{Message, ToolChoice};

use super::fakes::{FakeBuiltinTools, fails, says};
use super::setting::Setting;
use std::sync::Arc;

/// Calls the same for ever.
const ALWAYS: &str = "answers: [{ say: 'I look.', call: [{ tool: files__read, arguments: { path: a } }] }]";

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not 0")
}

// Promises: AGENT-22
#[tokio::test(start_paused = true)]
async fn iterations_end_with_a_partial_answer_and_a_warning_before() {
    let mut setting = Setting::new(ALWAYS);
    setting.budgets.iterations = number(3);
    let times = AtomicU32::new(0);
    setting.host.answers(move |call| says(&call, &times.fetch_add(1, Ordering::Relaxed).to_string()));
    let end = setting.run("look").await;
    let (word, sentence) = end.outcome.expect_err("no answer");
    assert_eq!((word.as_str(), end.iterations), ("iterations", 3));
    assert!(sentence.contains("asked 3 times"), "{sentence}");
    assert_eq!(end.partial.as_deref(), Some("I look."));
    assert_eq!(setting.host.made().len(), 2, "what the last answer calls cannot be answered");
    assert!(setting.heard.results()[2].output.contains("no tool was on offer"));
    let last = setting.model.last();
    assert_eq!((last.tool_choice, last.tools.is_empty()), (ToolChoice::None, false));
    assert!(format!("{:?}", last.messages).contains("the last time you are asked"));
    let ended = setting.journal.ended().expect("an end");
    assert!(ended.reason == "iterations" && ended.note.contains("asked 3 times"), "{ended:?}");
    assert!(!setting.recall.learned.lock()[0].success);
}

// Promises: AGENT-22
#[tokio::test(start_paused = true)]
async fn a_tool_that_keeps_failing_ends_the_turn() {
    let setting = Setting::new(ALWAYS);
    let times = AtomicU32::new(0);
    setting.host.answers(move |call| fails(&call, &times.fetch_add(1, Ordering::Relaxed).to_string()));
    let (word, sentence) = setting.run("look").await.outcome.expect_err("no answer");
    assert_eq!(word, "tool_errors");
    assert!(sentence.contains("files__read failed 8 times"), "{sentence}");
}

// Promises: AGENT-22
#[tokio::test(start_paused = true)]
async fn the_same_success_again_and_again_ends_the_turn() {
    let setting = Setting::new(ALWAYS);
    let (word, _) = setting.run("look").await.outcome.expect_err("no answer");
    assert_eq!((word.as_str(), setting.host.made().len()), ("identical_successes", 3));
    assert!(format!("{:?}", setting.model.last().messages).contains("once more ends the turn"));
}

// Promises: AGENT-22
#[tokio::test(start_paused = true)]
async fn the_same_failure_again_and_again_is_no_progress() {
    let setting = Setting::new(ALWAYS);
    setting.host.answers(|call| fails(&call, "no such file"));
    let (word, _) = setting.run("look").await.outcome.expect_err("no answer");
    assert_eq!((word.as_str(), setting.host.made().len()), ("no_progress", 3));
}

// Promises: AGENT-22
#[tokio::test(start_paused = true)]
async fn time_ends_a_turn_that_waits_for_a_tool_and_lets_go_of_it() {
    let setting = Setting::new(ALWAYS);
    let alive = Arc::new(());
    let held = Arc::downgrade(&alive);
    let kept = parking_lot::Mutex::new(Some(alive));
    setting.host.answers(move |_| {
        let alive = kept.lock().take();
        Box::pin(async move {
            std::future::pending::<()>().await;
            drop(alive);
            unreachable!("nobody waits for it")
        })
    });
    let end = setting.run("look").await;
    let (word, sentence) = end.outcome.expect_err("no answer");
    assert_eq!(word, "wall_time");
    assert!(sentence.contains("600 s"), "{sentence}");
    assert_eq!(end.duration_ms, 600_000);
    assert!(held.upgrade().is_none(), "the call was let go of");
    assert_eq!(setting.journal.kinds(), ["asked", "answered", "began", "executed", "ended"]);
    let said = format!("{:?}", setting.journal.said());
    assert!(said.contains("not known what the call did"), "{said}");
}

// Promises: AGENT-23
#[tokio::test(start_paused = true)]
async fn time_for_which_a_person_is_waited_for_does_not_count() {
    let setting = Setting::new(
        "answers: [{ when: { results: [notes__add] }, say: done }, { call: [{ tool: notes__add, arguments: { text: x } }] }]",
    );
    setting.confirm.parked.lock().insert("notes.add".to_owned());
    let confirm = Arc::clone(&setting.confirm);
    let person = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3 * 3600)).await;
        confirm.parked.lock().clear();
        confirm.told.notify_one();
    });
    let end = setting.run("note it").await;
    person.await.expect("no panic");
    assert_eq!(end.outcome, Ok("done".to_owned()));
    assert_eq!(end.duration_ms, 3 * 3600 * 1000);
}

// Promises: AGENT-22
#[tokio::test(start_paused = true)]
async fn cost_ends_a_turn_before_its_tools_are_run() {
    let mut setting = Setting::new(
        "answers: [{ say: 'I look.', call: [{ tool: files__read, arguments: { path: a } }], usage: { input_tokens: 1000000, cached_input_tokens: 0, output_tokens: 0, thinking_tokens: 0 } }]",
    );
    setting.budgets.micro_usd = Some(1_000_000);
    let end = setting.run("look").await;
    let (word, sentence) = end.outcome.expect_err("no answer");
    assert_eq!((word.as_str(), end.partial.as_deref()), ("cost", Some("I look.")));
    assert!(sentence.contains("$1"), "{sentence}");
    assert_eq!(end.cost_pico_usd, 1_000_000_000_000);
    assert!(setting.host.made().is_empty());
    assert!(format!("{:?}", setting.journal.said()).contains("not made"), "each call has its result");
}

// Promises: AGENT-40
#[tokio::test(start_paused = true)]
async fn what_sub_agents_cost_counts_before_the_next_question() {
    let mut setting = Setting::new("answers: [{ call: [{ tool: memory__save }] }]");
    setting.own.push(Arc::new(FakeBuiltinTools));
    setting.budgets.micro_usd = Some(5_000);
    let end = setting.run("remember").await;
    assert_eq!(end.outcome.expect_err("no answer").0, "cost");
    assert_eq!(setting.model.times(), 1);
}

// Promises: AGENT-22
#[tokio::test(start_paused = true)]
async fn an_empty_answer_is_asked_for_again_and_then_told() {
    let nothing = "answers: [{ say: ' ', think: hm }]";
    let setting = Setting::with_second(nothing, nothing);
    let (word, sentence) = setting.run("hi").await.outcome.expect_err("no answer");
    // The provider works, so no other is asked.
    assert_eq!((word.as_str(), setting.model.times(), setting.second.times()), ("empty_answer", 2, 0));
    assert!(sentence.contains("empty"), "{sentence}");

    let setting = Setting::new("answers: [{ think: hm, finish: filtered }]");
    let (word, sentence) = setting.run("hi").await.outcome.expect_err("no answer");
    assert_eq!((word.as_str(), setting.model.times()), ("answer_withheld", 2));
    assert!(sentence.contains("withheld"), "{sentence}");
    let said = setting.model.last().messages;
    let empty =
        |message: &Message| matches!(message, Message::Assistant { text, .. } if text.trim().is_empty());
    assert!(!said.iter().any(empty), "providers refuse empty messages: {said:?}");
    assert!(format!("{said:?}").contains("try 1 of 1"));
}

// Promises: AGENT-67
#[tokio::test(start_paused = true)]
async fn a_cut_answer_is_continued_where_it_stops_and_is_none_if_it_never_ends() {
    let script = "
answers:
  - { times: 1, say: One, finish: length }
  - { times: 1, say: ' and two', finish: length }
  - { say: ' and three.' }
";
    let setting = Setting::new(script);
    assert_eq!(setting.answer("count").await, "One and two and three.");
    assert_eq!(setting.heard.text(), "One and two and three.");
    let Kind::Done(done) = setting.heard.last() else { panic!("an answer") };
    assert_eq!((done.finish.as_str(), setting.model.times()), ("stop", 3));
    assert_eq!(done.models, ["scripted/one"]);
    // The journal has one answer.
    assert_eq!(setting.journal.said().len(), 2);

    let setting = Setting::new("answers: [{ say: 'on', finish: length }]");
    let end = setting.run("count").await;
    assert_eq!(end.outcome.expect_err("it has no end").0, "answer_cut_off");
    assert_eq!(end.partial.as_deref(), Some("onononon"));
    let Kind::Error(error) = setting.heard.last() else { panic!("no answer") };
    assert_eq!((error.finish.as_str(), setting.model.times()), ("length", 4));
}

// Promises: AGENT-67
#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_goes_back_to_the_model() {
    let script = "
answers:
  - { times: 1, say: I write., call: [{ tool: files__write, arguments: { path: a } }], finish: length }
  - { say: in parts then }
";
    let setting = Setting::new(script);
    assert_eq!(setting.answer("write").await, "in parts then");
    assert!(setting.host.made().is_empty());
    let said = format!("{:?}", setting.model.last().messages);
    assert!(said.contains("files__write") && said.contains("was not made"), "{said}");
}

// Promises: AGENT-82
#[tokio::test(start_paused = true)]
async fn a_job_that_is_still_running_can_be_waited_for() {
    let setting = Setting::new(
        "
answers:
  - { when: { step: 1 }, call: [{ tool: files__read, arguments: { path: job } }] }
  - { when: { step: 2 }, call: [{ tool: files__read, arguments: { path: job } }] }
  - when: { step: 3 }
    call: [{ tool: talon__wait, arguments: { seconds: 5 } }, { tool: files__read, arguments: { path: job } }]
  - when: { step: 4 }
    call: [{ tool: talon__wait, arguments: { seconds: 60 } }, { tool: files__read, arguments: { path: job } }]
  - { when: { step: 5 }, call: [{ tool: talon__wait, arguments: { seconds: 9999 } }] }
  - say: it is done
",
    );
    let began = tokio::time::Instant::now();
    setting.host.answers(move |call| {
        let done = began.elapsed() >= Duration::from_secs(65);
        says(&call, if done { "done" } else { "pending" })
    });
    assert_eq!(setting.answer("wait for the job").await, "it is done");
    let asked = setting.model.asked.lock().clone();
    let offers = |n: usize| asked[n].tools.iter().any(|tool| tool.name == "talon__wait");
    assert!(!offers(0) && !offers(1) && offers(2), "it is offered once results repeat");
    let outputs: Vec<String> = setting.heard.results().into_iter().map(|result| result.output).collect();
    assert!(outputs.iter().any(|output| output.contains("· done")), "{outputs:?}");
    assert!(outputs.iter().any(|output| output.contains("seconds is 1 to 300")), "{outputs:?}");
}
