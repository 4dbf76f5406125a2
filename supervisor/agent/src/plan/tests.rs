use proptest::prelude::*;
use talon_store::{Engine, NewSession, StoreOptions};

use super::*;

fn steps(texts: &[&str]) -> Vec<PlanStep> {
    checked_steps(texts.iter().map(|text| (*text, ""))).expect("steps")
}

fn rewrite(texts: &[&str], call: &str) -> PlanChange {
    PlanChange::Rewrite { steps: steps(texts), call: call.to_owned() }
}

#[test]
fn steps_are_bounded_lines_without_control_syntax() {
    let one = |text: &str, state: &str| checked_steps([(text, state)].into_iter());
    assert_eq!(one("look\nat \u{202e}it", "done").unwrap()[0].state, StepState::Done);
    assert!(!one("look\nat it", "").unwrap()[0].text.contains('\n'));
    assert_eq!(one(" \n ", ""), Err(StepError::Empty { number: 1 }));
    assert_eq!(one("look", "later"), Err(StepError::UnknownState { number: 1 }));
    let long = "x".repeat(MAX_STEP_BYTES + 1);
    assert_eq!(one(&long, ""), Err(StepError::TooLong { number: 1, bytes: long.len() }));
    let many = vec![("look", ""); MAX_STEPS + 1];
    assert_eq!(checked_steps(many.into_iter()), Err(StepError::TooMany { count: MAX_STEPS + 1 }));
    for state in StepState::WORDS {
        assert_eq!(StepState::parse(state).map(StepState::word), Some(state));
    }
}

// Promises: AGENT-201
#[test]
fn what_a_person_changed_is_not_written_over_unseen() {
    let plan = Plan::default().with(rewrite(&["look", "write"], "1.1.0")).unwrap();
    assert!(!plan.is_unseen() && plan.is_open() && !plan.is_edited());
    // The same call after a restart.
    assert_eq!(plan.with(rewrite(&["other"], "1.1.0")).unwrap(), plan);
    let edited = plan.with(PlanChange::Edit { steps: steps(&["look"]), revision: 1 }).unwrap();
    assert!(edited.is_unseen() && edited.is_edited());
    let refused = edited.with(rewrite(&["look", "write"], "1.2.0"));
    assert_eq!(refused, Err(PlanError::Conflict(Box::new(edited.clone()))));
    let shown = edited.with(PlanChange::Show).unwrap();
    assert_eq!(shown.with(rewrite(&["look", "tell"], "1.2.0")).unwrap().text(), "1. look\n2. tell");
    // Who saw an older plan changes nothing.
    let late = PlanChange::Edit { steps: Vec::new(), revision: 1 };
    assert_eq!(edited.with(late), Err(PlanError::Conflict(Box::new(edited))));
}

#[test]
fn an_approval_is_for_one_turn() {
    let plan = Plan::default().with(rewrite(&["look"], "4.1.0")).unwrap();
    assert!(!plan.is_approved_in(4) && !plan.is_approved_in(0));
    let plan = plan.with(PlanChange::Approve { turn: 4 }).unwrap();
    assert!(plan.is_approved_in(4) && !plan.is_approved_in(5) && plan.to_wire().approved);
    let nothing = Plan::default().with(PlanChange::Approve { turn: 4 }).unwrap();
    assert!(!nothing.is_approved_in(4));
}

fn any_change() -> impl Strategy<Value = PlanChange> {
    let texts = || {
        prop::collection::vec("[a-z]{1,8}", 0..4).prop_map(|texts| {
            texts.into_iter().map(|text| PlanStep { text, state: StepState::Open }).collect::<Vec<_>>()
        })
    };
    prop_oneof![
        (texts(), "[0-9]").prop_map(|(steps, call)| PlanChange::Rewrite { steps, call }),
        (texts(), 0_u64..6).prop_map(|(steps, revision)| PlanChange::Edit { steps, revision }),
        (1_u64..4).prop_map(|turn| PlanChange::Approve { turn }),
        Just(PlanChange::Show),
    ]
}

proptest! {
    // Promises: AGENT-201
    #[test]
    fn revisions_grow_and_an_edit_stays_until_it_was_shown(changes in prop::collection::vec(any_change(), 0..20)) {
        let mut plan = Plan::default();
        for change in changes {
            let Ok(next) = plan.with(change.clone()) else { continue };
            prop_assert!(next.revision == plan.revision || next.revision == plan.revision + 1);
            if plan.is_unseen() && matches!(change, PlanChange::Rewrite { .. }) {
                prop_assert_eq!(&next, &plan);
            }
            let json = serde_json::to_string(&next).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Plan>(&json).unwrap(), &next);
            plan = next;
        }
    }
}

// Promises: AGENT-201
#[tokio::test]
async fn the_store_keeps_it_within_its_limit() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("state/agent.db");
    let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a directory of our own");
    let session = NewSession { sender: "ada".to_owned(), channel: "cli".to_owned(), ..NewSession::default() };
    let session = store.sessions().create(session).await.expect("there is room");
    let plans = PlanRegistry::new(store.sessions());
    let place = plans.of(session.id);
    assert_eq!(place.read().await.unwrap(), Plan::default());
    let written = place.change(rewrite(&["look", "write"], "1.1.0")).await.unwrap();
    assert_eq!(place.read().await.unwrap(), written);
    let large = vec![PlanStep { text: "x".repeat(MAX_STEP_BYTES), state: StepState::Open }; MAX_STEPS];
    let refused = place.change(PlanChange::Edit { steps: large, revision: 1 }).await;
    assert!(matches!(refused, Err(PlanError::TooLarge { .. })), "{refused:?}");
    assert_eq!(place.read().await.unwrap(), written);
    // Of two who saw the same, one changes it.
    let edit = |text: &str| PlanChange::Edit { steps: steps(&[text]), revision: 1 };
    let (one, two) = tokio::join!(place.change(edit("one")), place.change(edit("two")));
    assert_eq!(usize::from(one.is_ok()) + usize::from(two.is_ok()), 1);
}
