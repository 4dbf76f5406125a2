//! Whatever was written of a turn when it was interrupted, its session can be read, shown, closed, and gone
//! on with.

use proptest::prelude::*;
use talon_guard::Sanitizer;
use talon_llm::model::Message;

use super::tests::{TestSession, asked, calls, ended, received, result, says};
use super::*;
use crate::context::{Sections, Summary, history};
use crate::question::Question;
use crate::tokens::Estimate;

/// The entries of a turn as a driver writes them: some answers with calls, each call begun or not, results
/// early or not; notes; answers that go back; an end.
pub(super) fn turn() -> impl Strategy<Value = Vec<JournalEntry>> {
    let ids = ["a", "b", "a", "c"];
    let batch = (1..=ids.len()).prop_flat_map(move |n| {
        let begun = proptest::collection::vec(any::<(bool, bool, bool)>(), n);
        begun.prop_map(move |begun| {
            let mut entries = vec![calls(&ids[..n])];
            for (place, (began, asks, early)) in begun.iter().enumerate() {
                if *began {
                    entries.push(JournalEntry::CallStarted { place });
                    if *asks {
                        let question =
                            Box::new(Question { text: "Which?".to_owned(), ..Question::default() });
                        entries.push(JournalEntry::CallParked { place, question });
                    }
                    if *early {
                        entries
                            .push(JournalEntry::CallFinished { place, result: result(&format!("r{place}")) });
                    }
                }
            }
            entries.push(JournalEntry::CallsFinished(
                (0..n).map(|place| result(&format!("r{place}"))).collect(),
            ));
            entries
        })
    });
    let note = |feedback| move |text: String| vec![JournalEntry::Noted { text, feedback }];
    let back = "[a-z]{0,5}"
        .prop_map(|text| vec![says(&text), JournalEntry::Noted { text: "no".to_owned(), feedback: true }]);
    let step = prop_oneof![batch, "[a-z]{1,5}".prop_map(note(false)), back];
    (any::<bool>(), proptest::collection::vec(step, 0..5)).prop_map(|(has_hooks, steps)| {
        let steps = steps.into_iter().flatten();
        let received = has_hooks.then(|| received("q"));
        received.into_iter().chain([asked("q")]).chain(steps).chain([says("answer"), ended()]).collect()
    })
}

/// Each call has its result right behind it, in its order, and there is no other result.
fn well_formed(messages: &[Message]) -> Result<(), TestCaseError> {
    let mut at = 0;
    while at < messages.len() {
        let message = &messages[at];
        at += 1;
        prop_assert!(!matches!(message, Message::Tool { .. }), "a result of no call at {at}: {messages:?}");
        if let Message::Assistant { calls, text, .. } = message {
            prop_assert!(
                !(calls.is_empty() && text.trim().is_empty()),
                "an answer that says nothing: {messages:?}"
            );
            for call in calls {
                let is_its =
                    matches!(messages.get(at), Some(Message::Tool { call_id, .. }) if *call_id == call.id);
                prop_assert!(is_its, "a call without its result at {at}: {messages:?}");
                at += 1;
            }
        }
    }
    Ok(())
}

fn check(before: &[Vec<JournalEntry>], last: &[JournalEntry], written: usize) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let place = TestSession::new().await;
        let journal = place.journal();
        let turns = before.iter().map(|turn| &turn[..]).chain([&last[..written]]);
        let mut expected = Transcript::default();
        for (turn, entries) in (1_u64..).zip(turns) {
            for entry in entries {
                journal.add(turn, entry.clone()).await.expect("written");
                expected.apply(turn, entry);
            }
        }
        let (past, _) = journal.past().await.expect("read");
        prop_assert_eq!(&past, &expected.finish(), "a journal says what its driver knew");
        let messages: Vec<Message> = past.iter().map(|past| past.message.clone()).collect();
        well_formed(&messages)?;
        let shown = history::select(&past, &Sections::default(), &Estimate, &Sanitizer::default());
        well_formed(&shown.messages)?;

        let look = place.look().await;
        let last_turn = before.len() as u64 + u64::from(written > 0);
        prop_assert_eq!(look.last_turn, last_turn);
        prop_assert_eq!(look.unfinished.is_some(), written > 0 && written < last.len());
        if let Some(unfinished) = look.unfinished {
            let seen = &last[..written];
            let is_hooked = matches!(seen, [JournalEntry::Received { .. }, JournalEntry::Asked { .. }, ..]);
            prop_assert_eq!(&unfinished.entries[..], &seen[usize::from(is_hooked)..]);
            // It can be gone on with.
            for entry in &last[written..] {
                journal.add(last_turn, entry.clone()).await.expect("written");
            }
            prop_assert_eq!(place.look().await.unfinished, None);
            let (past, _) = journal.past().await.expect("read");
            well_formed(&past.iter().map(|past| past.message.clone()).collect::<Vec<_>>())?;
        }
        // And the older turns can be summarized, whatever became of the last.
        let older = past.iter().take_while(|past| past.turn <= before.len() as u64).count();
        if older > 0 {
            journal
                .summarized(older, Summary { text: "s".to_owned(), ..Summary::default() })
                .await
                .expect("whole turns");
            let (left, _) = journal.past().await.expect("read");
            prop_assert!(left.iter().all(|past| past.turn > before.len() as u64));
        }
        Ok(())
    })
}

proptest! {
    // Each case has a database of its own.
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    // Promises: AGENT-27
    #[test]
    fn a_session_can_be_read_and_gone_on_with_wherever_it_was_interrupted(
        before in proptest::collection::vec(turn(), 0..3),
        last in turn(),
        cut in any::<proptest::sample::Index>(),
    ) {
        check(&before, &last, cut.index(last.len() + 1))?;
    }

    // Promises: AGENT-27
    #[test]
    fn a_session_that_was_interrupted_and_closed_goes_on_with_the_next_turn(last in turn(), cut in any::<proptest::sample::Index>()) {
        let written = 1 + cut.index(last.len() - 1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let messages = runtime.block_on(async {
            let place = TestSession::new().await;
            let journal = place.journal();
            for entry in &last[..written] {
                journal.add(1, entry.clone()).await.expect("written");
            }
            close(&journal, 1, "It was interrupted.").await.expect("closed");
            journal.add(2, asked("and now?")).await.expect("written");
            journal.past().await.expect("read").0
        });
        well_formed(&messages.iter().map(|past| past.message.clone()).collect::<Vec<_>>())?;
        prop_assert_eq!(messages.last().map(|past| past.turn), Some(2));
    }
}
