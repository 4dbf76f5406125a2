//! Turns that resume after the agent ended in the middle.

use std::sync::Arc;

use talon_llm::model::Message;

use super::fakes::Memory;
use super::setting::Setting;
use crate::journal::{JournalEntry, UNKNOWN};

const SCRIPT: &str = "
answers:
  - when: { results: [files__read, notes__add] }
    say: all done
  - when: { results: [files__read] }
    call:
      - { tool: notes__add, arguments: { text: one } }
      - { tool: files__write, arguments: { path: two } }
  - say: I look.
    call: [{ tool: files__read, arguments: { path: a } }]
";

/// Kills a turn after a number of entries.
async fn killed_after(entries: usize) -> Setting {
    let setting = Setting::new(SCRIPT);
    *setting.journal.hangs_after.lock() = Some(entries);
    {
        let (spec, environment, driver) = (setting.spec("do it"), setting.environment(), setting.driver());
        tokio::select! {
            biased;
            end = crate::driver::TurnRunner::run(&driver, &environment, spec) => panic!("it was to hang: {end:?}"),
            () = setting.journal.hangs.notified() => {}
        }
    }
    setting
}

/// The same environment without the agent's memory.
fn restarted(setting: Setting, entries: usize) -> Setting {
    let kept = setting.journal.entries()[..entries].to_vec();
    Setting { journal: Memory::of(kept), heard: Arc::default(), counted: Arc::default(), ..setting }
}

// Promises: AGENT-27
#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_wherever_it_was_killed_and_repeats_no_call() {
    let whole = Setting::new(SCRIPT);
    assert_eq!(whole.answer("do it").await, "all done");
    let written = whole.journal.entries().len();
    for entries in 1..written {
        let setting = killed_after(entries).await;
        assert_eq!(setting.journal.entries().len(), entries);
        let setting = restarted(setting, entries);
        let mut spec = setting.spec("it comes from the journal");
        let unfinished = Setting::interrupted(&setting.journal.entries());
        spec.caller.turn = unfinished.turn;
        spec.resumes = Some(unfinished);
        let end = setting.run_spec(spec).await;
        assert_eq!(end.outcome, Ok("all done".to_owned()), "killed after {entries}");
        let mut made = setting.host.made();
        let all = made.len();
        made.sort();
        made.dedup();
        assert_eq!(made.len(), all, "killed after {entries}: a call was made twice");
        assert_eq!(setting.journal.kinds().last(), Some(&"ended"));
        assert!(
            setting.heard.loops().len() > usize::from(entries + 1 < written),
            "clients are told where it goes on"
        );
        let said = setting.journal.said();
        let (calls, results) = said.iter().fold((0, 0), |(calls, results), past| match &past.message {
            Message::Assistant { calls: made, .. } => (calls + made.len(), results),
            Message::Tool { .. } => (calls, results + 1),
            _ => (calls, results),
        });
        assert_eq!(calls, results, "killed after {entries}: {said:?}");
    }
}

// Promises: AGENT-27
#[tokio::test(start_paused = true)]
async fn a_call_that_was_begun_and_has_no_result_is_told_to_be_unknown() {
    // Asked, answered, begun: the next entry would have been the result.
    let setting = restarted(killed_after(3).await, 3);
    assert_eq!(setting.host.made(), ["files.read(a)"]);
    let mut spec = setting.spec("");
    spec.caller.turn = 1;
    spec.resumes = Some(Setting::interrupted(&setting.journal.entries()));
    setting.run_spec(spec).await.outcome.expect("an answer");
    assert_eq!(setting.host.made().iter().filter(|call| *call == "files.read(a)").count(), 1);
    let said = format!("{:?}", setting.journal.said());
    assert!(said.contains(UNKNOWN), "{said}");
}

// Promises: AGENT-29
#[tokio::test(start_paused = true)]
async fn a_call_that_waited_for_a_person_is_asked_for_again_and_what_others_brought_is_kept() {
    let setting = Setting::new(SCRIPT);
    setting.confirm.parked.lock().insert("files.write".to_owned());
    {
        let (spec, environment, driver) = (setting.spec("do it"), setting.environment(), setting.driver());
        let waits = async {
            while !setting.journal.kinds().contains(&"brought") {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            end = crate::driver::TurnRunner::run(&driver, &environment, spec) => panic!("it was to wait: {end:?}"),
            () = waits => {}
        }
    }
    setting.confirm.parked.lock().clear();
    let entries = setting.journal.entries().len();
    let setting = restarted(setting, entries);
    let mut spec = setting.spec("");
    spec.caller.turn = 1;
    spec.resumes = Some(Setting::interrupted(&setting.journal.entries()));
    assert_eq!(*setting.confirm.ended.lock(), 0, "what is parked stays so over the restart");
    assert_eq!(setting.run_spec(spec).await.outcome, Ok("all done".to_owned()));
    assert_eq!(*setting.confirm.ended.lock(), 1);
    assert_eq!(setting.host.made(), ["files.read(a)", "notes.add(one)", "files.write(two)"]);
    let said = format!("{:?}", setting.journal.said());
    assert!(said.contains("· add one") && said.contains("· write two"), "{said}");
}

// Promises: AGENT-29
#[tokio::test(start_paused = true)]
async fn a_turn_that_goes_on_may_do_no_more_than_before() {
    let setting = Setting::new(SCRIPT);
    *setting.journal.hangs_after.lock() = Some(1);
    let mut spec = setting.spec("do it");
    spec.within = vec!["files.read".to_owned()];
    {
        let (environment, driver) = (setting.environment(), setting.driver());
        tokio::select! {
            biased;
            end = crate::driver::TurnRunner::run(&driver, &environment, spec) => panic!("it was to hang: {end:?}"),
            () = setting.journal.hangs.notified() => {}
        }
    }
    let setting = restarted(setting, 1);
    let mut spec = setting.spec("");
    spec.caller.turn = 1;
    spec.resumes = Some(Setting::interrupted(&setting.journal.entries()));
    // The present restriction counts, too.
    spec.within = vec!["files.*".to_owned(), "notes.*".to_owned()];
    setting.run_spec(spec).await;
    let offered: Vec<String> = setting.model.last().tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(offered, ["files__read"]);
    assert_eq!(setting.host.calls.lock()[0].within, ["files.read"]);
    assert!(matches!(setting.journal.entries()[0].1, JournalEntry::Asked { .. }));
}
