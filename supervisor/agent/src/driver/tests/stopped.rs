//! Turns that end from outside: cancelled, without a model, without room.

use std::sync::Arc;

use talon_llm::model::Message;
use talon_llm::route::catalog::ModelRef;
use talon_llm::route::cost::Budget;
use talon_llm::route::router::{RejectionReason, RouteError, SkippedCandidate};
use talon_proto::agent::chunk::Kind;

use super::fakes::says;
use super::setting::Setting;

// Promises: AGENT-81
#[tokio::test(start_paused = true)]
async fn a_question_is_let_go_of_when_its_turn_is_cancelled() {
    let setting =
        Arc::new(Setting::new("answers: [{ times: 1, say: 'I begin', hang: true }, { say: again }]"));
    let running = tokio::spawn({
        let setting = Arc::clone(&setting);
        async move { setting.run("go").await }
    });
    while !setting.heard.text().contains("I begin") {
        tokio::task::yield_now().await;
    }
    setting.cancel.cancel();
    let end = running.await.expect("no panic");
    let (word, sentence) = end.outcome.expect_err("no answer");
    assert_eq!((word.as_str(), sentence.as_str()), ("cancelled", "Cancelled."));
    assert_eq!(end.partial.as_deref(), Some("I begin"), "what was heard of it");
    assert_eq!(setting.journal.kinds(), ["asked", "ended"]);
    assert!(setting.journal.ended().expect("an end").note.contains("the user ended it"));

    let mut spec = setting.spec("again");
    spec.cancel = tokio_util::sync::CancellationToken::new();
    assert_eq!(setting.run_spec(spec).await.outcome, Ok("again".to_owned()), "the session stays usable");
    let kept = Message::Assistant { text: "I begin".to_owned(), calls: Vec::new(), thoughts: None };
    assert!(setting.model.last().messages.contains(&kept), "the next turn has what was written");
}

#[tokio::test(start_paused = true)]
async fn calls_are_let_go_of_when_their_turn_is_cancelled_and_each_has_a_result() {
    let setting = Setting::new(
        "
answers:
  - call:
      - { tool: files__read, arguments: { path: quick } }
      - { tool: files__read, arguments: { path: slow } }
      - { tool: notes__add, arguments: { text: parked } }
",
    );
    setting.confirm.parked.lock().insert("notes.add".to_owned());
    let cancel = setting.cancel.clone();
    setting.host.answers(move |call| {
        if call.args["path"] == "quick" {
            return says(&call, "quick");
        }
        cancel.cancel();
        Box::pin(std::future::pending())
    });
    let end = setting.run("go").await;
    assert_eq!(end.outcome.expect_err("no answer").0, "cancelled");
    assert_eq!(setting.journal.kinds().last(), Some(&"ended"));
    assert!(setting.journal.kinds().contains(&"executed"));
    let said = setting.journal.said();
    let results = said.iter().filter(|past| matches!(past.message, Message::Tool { .. })).count();
    assert_eq!(results, 3, "{said:?}");
    assert_eq!(setting.heard.results().len(), 3);
    assert_eq!(*setting.confirm.ended.lock(), 1, "what is parked is let go of");
}

// Promises: AGENT-61
#[tokio::test(start_paused = true)]
async fn a_store_that_stalls_keeps_no_turn_from_being_ended() {
    let setting = Arc::new(Setting::new(
        "answers: [{ call: [{ tool: files__read, arguments: { path: a } }, { tool: files__read, arguments: { path: slow } }] }]",
    ));
    setting.host.answers(|call| match call.args["path"].as_str() {
        "slow" => Box::pin(std::future::pending()),
        said => says(&call, said),
    });
    // asked, answered, began twice; the first result is the fifth.
    *setting.journal.hangs_after.lock() = Some(4);
    let running = tokio::spawn({
        let setting = Arc::clone(&setting);
        async move { setting.run("go").await }
    });
    setting.journal.hangs.notified().await;
    setting.cancel.cancel();
    let end = running.await.expect("no panic");
    assert_eq!(end.outcome.expect_err("no answer").0, "cancelled");
    assert!(setting.heard.results().iter().any(|result| result.success));

    let setting = Setting::new("answers: [{ say: hi }]");
    *setting.journal.hangs_after.lock() = Some(1);
    let (word, sentence) = setting.run("go").await.outcome.expect_err("no answer");
    assert_eq!(word, "not_stored");
    assert!(sentence.contains("within 10 s"), "{sentence}");
}

// Promises: AGENT-24
#[tokio::test(start_paused = true)]
async fn a_fallback_is_told_and_what_was_said_before_it_is_taken_back() {
    let setting = Setting::with_second(
        "answers: [{ say: 'half of', fault: { class: server } }]",
        "answers: [{ say: whole }]",
    );
    let end = setting.run("go").await;
    assert_eq!(end.outcome, Ok("whole".to_owned()));
    assert_eq!(end.model.as_deref(), Some("scripted-two/two"));
    let notices = setting.heard.notices();
    assert!(
        notices.iter().any(|notice| notice.discard_text && notice.text.contains("scripted/one")),
        "{notices:?}"
    );
    assert!(notices.iter().any(|notice| notice.text.contains("scripted-two/two answered")), "{notices:?}");
    let Kind::Done(done) = setting.heard.last() else { panic!("{:?}", setting.heard.last()) };
    let tried: Vec<(&str, bool)> =
        done.attempts.iter().map(|one| (one.provider.as_str(), one.success)).collect();
    assert_eq!(tried.last(), Some(&("scripted-two", true)));
    assert!(tried.contains(&("scripted", false)), "{tried:?}");
}

// Promises: AGENT-24
#[tokio::test(start_paused = true)]
async fn without_a_model_the_turn_says_all_that_was_tried() {
    let fault = "answers: [{ fault: { class: billing, message: no credit } }]";
    let setting = Setting::with_second(fault, fault);
    let end = setting.run("go").await;
    let (word, sentence) = end.outcome.expect_err("no answer");
    assert_eq!((word.as_str(), end.attempts.len()), ("exhausted", 2));
    assert!(sentence.contains("no credit"), "{sentence}");
    let Kind::Error(error) = setting.heard.last() else { panic!("{:?}", setting.heard.last()) };
    assert_eq!(error.attempts[1].error_class, "billing");

    let mut setting = Setting::new("answers: [{ say: hi }]");
    setting.catalog = "{}".to_owned();
    assert_eq!(setting.run("go").await.outcome.expect_err("no answer").0, "no_provider");

    let mut setting = Setting::new("answers: [{ say: hi }]");
    setting.budget = Budget { per_session: Some("0.000001".parse().expect("money")), ..Budget::default() };
    assert_eq!(setting.run("go").await.outcome.expect_err("no answer").0, "over_budget");
}

#[tokio::test(start_paused = true)]
async fn the_end_tells_the_attempts_of_all_questions_and_of_too_many_how_many_are_left_out() {
    for (asked, told, left_out) in [(3, 3, None), (70, 64, Some("6 earlier attempts"))] {
        let mut setting =
            Setting::new("answers: [{ call: [{ tool: files__read, arguments: { path: a } }] }]");
        let many = |n| std::num::NonZeroU32::new(n).expect("not 0");
        setting.budgets.iterations = many(asked);
        (setting.budgets.identical_successes, setting.budgets.no_progress) = (many(100), many(100));
        let end = setting.run("go").await;
        assert_eq!(end.outcome.expect_err("no answer").0, "iterations");
        let Kind::Error(error) = setting.heard.last() else { panic!("{:?}", setting.heard.last()) };
        assert_eq!((end.attempts.len(), error.attempts.len()), (told, told));
        let notices = setting.heard.notices();
        let found = left_out.map(|text| notices.iter().any(|notice| notice.text.contains(text)));
        assert_ne!(found, Some(false), "{notices:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_asked_and_why_has_a_word() {
    use talon_llm::route::router::Outage;

    let word = |whys: Vec<RejectionReason>| {
        let passed_over = whys
            .into_iter()
            .map(|why| SkippedCandidate {
                model: ModelRef { provider: "p".to_owned(), name: "m".to_owned() },
                why,
            })
            .collect();
        crate::driver::ask::route_error_word(&RouteError::NoneFits { passed_over })
    };
    let small = || RejectionReason::Window { takes: 1, needed: 2 };
    let absent = || RejectionReason::Out(Outage::NotSetUp { what: "a key".to_owned() });
    let resting =
        || RejectionReason::Out(Outage::RateLimited { retry_in: std::time::Duration::from_secs(1) });
    assert_eq!(word(vec![absent(), RejectionReason::NoTools]), "no_provider");
    assert_eq!(word(vec![small(), absent()]), "context_full");
    assert_eq!(word(vec![small(), resting(), absent()]), "exhausted");
    assert_eq!(crate::driver::ask::route_error_word(&RouteError::NoModels), "no_provider");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_does_not_fit_is_not_asked() {
    let setting = Setting::new("answers: [{ say: hi }]");
    let end = setting.run(&"many words ".repeat(60_000)).await;
    let (word, sentence) = end.outcome.expect_err("no answer");
    assert_eq!((word.as_str(), setting.model.times()), ("context_full", 0));
    assert!(sentence.contains("window is full"), "{sentence}");
    assert_eq!(setting.answer("shorter").await, "hi", "the session stays usable");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_too_long_for_the_first_choice_goes_to_a_larger_one() {
    let mut setting = Setting::new("answers: [{ say: small }]");
    setting.catalog = setting.catalog.replacen("context_window: 128000", "context_window: 16000", 1);
    assert_eq!(setting.answer("short").await, "small");
    let end = setting.run(&"many words ".repeat(4_900)).await;
    assert_eq!(end.outcome, Ok("the second one".to_owned()));
    assert_eq!(end.stats.map(|stats| stats.window.0), Some(128_000));
}

// Promises: AGENT-81
#[tokio::test(start_paused = true)]
async fn of_a_call_that_waited_for_approval_when_its_turn_ended_it_is_known_that_it_did_not_run() {
    let setting = Setting::new(
        "
answers:
  - call:
      - { tool: notes__add, arguments: { text: parked } }
      - { tool: files__write, arguments: { path: a } }
      - { tool: files__write, arguments: { path: behind } }
",
    );
    setting.confirm.parked.lock().insert("notes.add".to_owned());
    let cancel = setting.cancel.clone();
    setting.host.answers(move |_| {
        cancel.cancel();
        Box::pin(std::future::pending())
    });
    assert_eq!(setting.run("go").await.outcome.expect_err("no answer").0, "cancelled");
    let said = setting.journal.said();
    let results = said.iter().filter_map(|past| match &past.message {
        Message::Tool { content, .. } => Some(content.as_str()),
        _ => None,
    });
    let results: Vec<&str> = results.collect();
    assert!(results[0].contains("not run") && !results[0].contains("not known"), "{results:?}");
    assert!(results[1].contains("not known what the call did"), "{results:?}");
    assert!(results[2].contains("not run"), "it waited for the one before it: {results:?}");
    let heard: Vec<String> = setting.heard.results().into_iter().map(|result| result.output).collect();
    assert_eq!(heard.iter().filter(|output| output.contains("not run")).count(), 2, "{heard:?}");
}
