//! The plan of a session in its turns.

use std::sync::Arc;

use talon_llm::model::{Message, NOTE_BEGINS};

use super::fakes::Memory;
use super::setting::Setting;
use crate::driver::{APPROVE_PLAN, Reply, TurnEnd};
use crate::plan::{Plan, PlanChange, PlanStep, SessionPlan as _, StepState, checked_steps};

const QUESTION: &str = "Carry out this plan?";

/// Looks around, tries to write without a plan, writes one, carries it out, and writes it again.
const SCRIPT: &str = "
answers:
  - when: { step: 1 }
    call:
      - { tool: files__read, arguments: { path: a } }
      - { tool: files__write, arguments: { path: early } }
  - when: { step: 2 }
    call: [{ tool: talon__plan, arguments: { steps: [{ text: write b }, { text: say so, state: open }] } }]
  - when: { step: 3 }
    call: [{ tool: files__write, arguments: { path: b } }]
  - when: { step: 4 }
    call: [{ tool: talon__plan, arguments: { steps: [{ text: write b, state: done }] } }]
  - say: all done
";

fn steps(texts: &[&str]) -> Vec<PlanStep> {
    checked_steps(texts.iter().map(|text| (*text, ""))).expect("steps")
}

/// A model that plans first; the person's reply is this.
fn planning(script: &str, reply: Reply) -> Setting {
    let setting = Setting::new(script);
    setting.confirm.replies.lock().insert(QUESTION.to_owned(), reply);
    setting
}

fn approval() -> Reply {
    Reply::Answered(APPROVE_PLAN.to_owned())
}

async fn run(setting: &Setting) -> TurnEnd {
    let mut spec = setting.spec("do it");
    spec.plans_first = true;
    setting.run_spec(spec).await
}

/// All that a model was sent with its last question, but for the system's part.
fn heard(setting: &Setting) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::User { text } | Message::Tool { content: text, .. } => Some(text.clone()),
        _ => None,
    };
    setting.model.last().messages.iter().filter_map(text).collect()
}

fn offers_plan(setting: &Setting) -> bool {
    setting.model.last().tools.iter().any(|tool| tool.name == "talon__plan")
}

// Promises: AGENT-200
#[tokio::test(start_paused = true)]
async fn only_calls_that_read_are_made_before_the_plan_is_approved() {
    let setting = planning(SCRIPT, approval());
    assert_eq!(run(&setting).await.outcome, Ok("all done".to_owned()));
    assert_eq!(setting.host.made(), ["files.read(a)", "files.write(b)"]);
    let heard = heard(&setting);
    assert!(heard[1].starts_with(NOTE_BEGINS) && heard[1].contains("wants a plan first"), "{heard:?}");
    assert!(heard.iter().any(|text| text.contains("approve a plan first")), "{heard:?}");
    let approved =
        heard.iter().find(|text| text.contains("The user approves the plan")).expect("it was approved");
    assert!(approved.contains("1. write b") && approved.contains("2. say so"), "{approved}");
    let plan = setting.session_plan.plan.lock().clone();
    assert_eq!(plan.steps, [PlanStep { text: "write b".to_owned(), state: StepState::Done }]);
    assert!(plan.is_approved_in(1) && !plan.is_open());
}

// Promises: AGENT-200
#[tokio::test(start_paused = true)]
async fn a_plan_that_is_not_approved_is_not_carried_out() {
    let setting = planning(SCRIPT, Reply::Declined("leave b alone".to_owned()));
    run(&setting).await.outcome.expect("an answer");
    assert_eq!(setting.host.made(), ["files.read(a)"]);
    assert!(heard(&setting).iter().any(|text| text.ends_with("says:\nleave b alone")));
    for reply in [
        Reply::Declined(String::new()),
        Reply::Expired(std::time::Duration::from_secs(60)),
        Reply::NotAsked("there is no room".to_owned()),
        Reply::Answered("approve, but later".to_owned()),
    ] {
        let setting = planning(SCRIPT, reply);
        run(&setting).await.outcome.expect("an answer");
        assert_eq!(setting.host.made(), ["files.read(a)"]);
    }
}

// Promises: AGENT-201
#[tokio::test(start_paused = true)]
async fn the_model_goes_on_with_the_plan_as_the_person_changed_it() {
    let setting = Arc::new(planning(SCRIPT, approval()));
    setting.confirm.parked.lock().insert(QUESTION.to_owned());
    let running = tokio::spawn({
        let setting = Arc::clone(&setting);
        async move { run(&setting).await }
    });
    while setting.confirm.asked.lock().last().map(String::as_str) != Some(QUESTION) {
        tokio::task::yield_now().await;
    }
    let revision = setting.session_plan.plan.lock().revision;
    let edit = PlanChange::Edit { steps: steps(&["say so", "write b"]), revision };
    setting.session_plan.change(edit).await.expect("it is the one that was seen");
    setting.confirm.parked.lock().clear();
    setting.confirm.told.notify_waiters();
    assert_eq!(running.await.expect("no panic").outcome, Ok("all done".to_owned()));
    let heard = heard(&setting);
    let approved =
        heard.iter().find(|text| text.contains("changed the plan, and approves it")).expect("approved");
    assert!(approved.contains("1. say so") && approved.contains("2. write b"), "{approved}");
}

// Promises: AGENT-201
#[tokio::test(start_paused = true)]
async fn a_later_turn_has_the_plan_and_what_changed_in_the_middle_is_noted() {
    let script = "
answers:
  - { when: { step: 1 }, call: [{ tool: files__read, arguments: { path: a } }] }
  - { when: { step: 2 }, call: [{ tool: talon__plan, arguments: { steps: [{ text: mine }] } }] }
  - { say: all done }
";
    let setting = Setting::new(script);
    *setting.session_plan.plan.lock() =
        Plan::default().with(PlanChange::Edit { steps: steps(&["look"]), revision: 0 }).expect("the first");
    let plans = Arc::clone(&setting.session_plan);
    setting.host.answers(move |call| {
        let mut plan = plans.plan.lock();
        let edit = PlanChange::Edit { steps: steps(&["look", "write"]), revision: plan.revision };
        *plan = plan.with(edit).expect("it is the one that was seen");
        super::fakes::says(&call, "read")
    });
    assert_eq!(setting.answer("go on").await, "all done");
    let first = setting.model.asked.lock()[0].clone();
    let shown = |message: &Message| matches!(message, Message::System { text } if text.contains("1. look"));
    assert!(first.messages.iter().any(shown), "{:?}", first.messages);
    assert!(offers_plan(&setting));
    let heard = heard(&setting);
    let note = heard.iter().find(|text| text.contains("the user changed the plan")).expect("a note");
    assert!(note.starts_with(NOTE_BEGINS) && note.contains("2. write"), "{note}");
    // The model had seen it, so that it may write another.
    assert_eq!(setting.session_plan.plan.lock().text(), "1. mine");

    // Without a plan nothing of all that is shown.
    let setting = Setting::new("answers: [{ say: hello }]");
    assert_eq!(setting.answer("hi").await, "hello");
    assert!(!offers_plan(&setting));
}

// Promises: AGENT-202
#[tokio::test(start_paused = true)]
async fn wherever_it_was_killed_a_turn_keeps_its_plan_and_its_approval() {
    let whole = planning(SCRIPT, approval());
    run(&whole).await.outcome.expect("an answer");
    let written = whole.journal.entries().len();
    for entries in 1..written {
        let setting = planning(SCRIPT, approval());
        *setting.journal.hangs_after.lock() = Some(entries);
        {
            let mut spec = setting.spec("do it");
            spec.plans_first = true;
            let (environment, driver) = (setting.environment(), setting.driver());
            tokio::select! {
                biased;
                end = crate::driver::TurnRunner::run(&driver, &environment, spec) => panic!("it was to hang: {end:?}"),
                () = setting.journal.hangs.notified() => {}
            }
        }
        let setting = Setting { journal: Memory::of(setting.journal.entries()), ..setting };
        let mut spec = setting.spec("it comes from the journal");
        let unfinished = Setting::interrupted(&setting.journal.entries());
        spec.caller.turn = unfinished.turn;
        spec.resumes = Some(unfinished);
        assert_eq!(setting.run_spec(spec).await.outcome, Ok("all done".to_owned()), "killed after {entries}");
        let writes = setting.host.made().iter().filter(|call| call.starts_with("files.write")).count();
        assert!(writes <= 1 && !setting.host.made().contains(&"files.write(early)".to_owned()), "{entries}");
    }
}
