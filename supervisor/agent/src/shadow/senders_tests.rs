//! Two agents with one database, of which the second one was started before the first one changed something.

use std::sync::Arc;

use talon_agent_settings::ShadowKeys;
use talon_event_bus::EventBus;
use talon_proto::agent::ghost_event::Kind;
use talon_proto::agent::{
    DecideGhostRequest, GetGhostResponse, Ghost, GhostAction, Observation, ObserveRequest,
    PauseShadowRequest, ShadowLogEntry,
};
use talon_store::{Engine, Store, StoreOptions};

use super::*;
use crate::notify::Notifier;
use crate::shadow::error::ShadowError;
use crate::shadow::goal::GoalStep;
use crate::shadow::pending_question::PendingQuestion;
use crate::shadow::shadow_loop::{APPROVED, WAITING};
use crate::shadow::views::Audience;

async fn database(directory: &tempfile::TempDir) -> Store {
    let path = directory.path().join("private").join("agent.db");
    StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store")
}

/// An agent's loop, with what is stored now.
async fn agent(store: &Store) -> Arc<ShadowLoop> {
    let (keys, notifier) =
        (ShadowKeys { enabled: true, ..ShadowKeys::default() }, Notifier::new(store.outbox()));
    let shadow = ShadowLoop::open(store.key_values(), notifier, &keys, Arc::default(), EventBus::default());
    shadow.await.expect("a loop")
}

/// A finding of this name.
fn finding(name: &str) -> ObserveRequest {
    let observation = Observation {
        id: name.to_owned(),
        kind: "command".to_owned(),
        trigger: "test_failed".to_owned(),
        repository: "/code".to_owned(),
        finding: format!("the test {name} fails"),
        ..Observation::default()
    };
    ObserveRequest { observations: vec![observation], ..ObserveRequest::default() }
}

/// A ghost that waits.
fn found(id: &str, sender: &str) -> GetGhostResponse {
    let custom =
        GhostAction { label: "Run tests".to_owned(), r#type: "custom".to_owned(), ..GhostAction::default() };
    let ghost = Ghost {
        id: id.to_owned(),
        sender: sender.to_owned(),
        state: WAITING.to_owned(),
        proposal: "Mend it.".to_owned(),
        actions: vec![custom],
        expires_unix_ms: u64::MAX,
        ..Ghost::default()
    };
    GetGhostResponse { ghost: Some(ghost), ..GetGhostResponse::default() }
}

async fn make(shadow: &ShadowLoop, id: &str, sender: &str) {
    let mut inner = shadow.inner.lock().await;
    shadow.create(&mut inner, id, found(id, sender)).await.expect("it is stored");
}

fn decision(id: &str, word: &str) -> DecideGhostRequest {
    let label = if word == "custom" { "Run tests".to_owned() } else { String::new() };
    DecideGhostRequest {
        id: id.to_owned(),
        decision: word.to_owned(),
        label,
        ..DecideGhostRequest::default()
    }
}

async fn only_step(shadow: &Arc<ShadowLoop>) -> GoalStep {
    let open = shadow.open_goals().await;
    assert_eq!(open.len(), 1);
    shadow.goal_step(&open[0]).await.expect("it is readable")
}

// Promises: SHADOW-48
#[tokio::test]
async fn what_one_agent_notes_of_a_person_another_one_does_not_overwrite() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = database(&directory).await;
    let (first, second) = (agent(&store).await, agent(&store).await);
    first.observe("ada", finding("one")).await.expect("it is taken");
    second.observe("ada", finding("two")).await.expect("it is taken");
    let again = second.observe("ada", finding("one")).await.expect("it is answered");
    assert_eq!(again.verdicts[0].verdict, "known", "the first one took it");
    let rest = PauseShadowRequest { paused: true, ..PauseShadowRequest::default() };
    second.pause("ada", rest).await.expect("it is stored");
    let taken = first.observe("ada", finding("three")).await.expect("it is taken");
    assert!(taken.state.is_some_and(|state| state.paused), "the second one was told to rest");
    let stored = first.store.load().await.expect("it is readable");
    let policy = &stored.senders["ada"].policy;
    assert!(policy.paused && policy.waiting.is_empty());
    assert_eq!(policy.triggers["test_failed"].observations, 3);

    // What the first one asks is not asked by the second one, too.
    let mut record = SenderRecord::new("eve");
    (record.policy.asking, record.entry) = (Some("o1".to_owned()), Some("E3".to_owned()));
    assert!(first.store_sender(&mut *first.inner.lock().await, record).await.expect("it is stored"));
    second.pause("eve", PauseShadowRequest::default()).await.expect("it is stored");
    assert!(second.next_question("").await.is_none());
    assert_eq!(first.next_question("").await.map(|question| question.entry).as_deref(), Some("E3"));
}

// Promises: SHADOW-24, SHADOW-48
#[tokio::test]
async fn forgetting_a_person_removes_what_another_agent_stored() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = database(&directory).await;
    let (first, second) = (agent(&store).await, agent(&store).await);
    for (sender, ghost) in [("ada", "A1"), ("bob", "B2")] {
        first.observe(sender, finding("one")).await.expect("it is taken");
        make(&first, ghost, sender).await;
        first.decide(None, sender, decision(ghost, "approve")).await.expect("it waits");
        let entry =
            ShadowLogEntry { id: ghost.to_owned(), sender: sender.to_owned(), ..ShadowLogEntry::default() };
        first.note(entry).await.expect("it is stored");
    }
    assert_eq!(second.forget_sender("ada").await.expect("it is forgotten"), 1);
    let stored = first.store.load().await.expect("it is readable");
    assert_eq!(stored.senders.into_keys().collect::<Vec<_>>(), ["bob"]);
    assert_eq!(stored.ghosts.into_keys().collect::<Vec<_>>(), ["B2"]);
    assert_eq!(stored.log.into_keys().collect::<Vec<_>>(), ["B2"]);
    assert_eq!(stored.goals.into_keys().collect::<Vec<_>>(), ["B2"]);

    // What the first one is still being told by a model leads to nothing.
    let mut record = SenderRecord::new("eve");
    (record.policy.asking, record.entry) = (Some("o1".to_owned()), Some("E3".to_owned()));
    assert!(first.store_sender(&mut *first.inner.lock().await, record).await.expect("it is stored"));
    second.forget_sender("eve").await.expect("it is forgotten");
    let question = PendingQuestion {
        sender: "eve".to_owned(),
        entry: "E3".to_owned(),
        observation: Observation { id: "o1".to_owned(), ..Observation::default() },
        spent_pico_usd: 0,
    };
    let entry = ShadowLogEntry { id: "E3".to_owned(), sender: "eve".to_owned(), ..ShadowLogEntry::default() };
    first.settle(question, entry, Some(found("E3", "eve"))).await.expect("it is stored");
    let stored = first.store.load().await.expect("it is readable");
    assert!(!stored.senders.contains_key("eve"));
    assert!(!stored.ghosts.contains_key("E3") && !stored.log.contains_key("E3"));
    assert!(first.get(None, "E3").await.is_err());
}

/// Another agent is running, knows the person from before, and was told more by the person's watcher.
// Promises: SHADOW-24, SHADOW-97
#[tokio::test]
async fn whom_one_agent_forgets_another_one_that_runs_shows_no_more() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = database(&directory).await;
    let first = agent(&store).await;
    let entry = |id: &str, sender: &str| ShadowLogEntry {
        id: id.to_owned(),
        sender: sender.to_owned(),
        ..ShadowLogEntry::default()
    };
    for (sender, ghost) in [("ada", "A1"), ("bob", "B2")] {
        first.observe(sender, finding("one")).await.expect("it is taken");
        make(&first, ghost, sender).await;
        first.note(entry(ghost, sender)).await.expect("it is stored");
    }
    let second = agent(&store).await;
    for sender in ["ada", "bob"] {
        second.hear_watcher(sender, &[]);
        second.observe(sender, finding("two")).await.expect("it is taken");
    }
    first.decide(None, "ada", decision("A1", "approve")).await.expect("it waits");
    let shown = async |shadow: &Arc<ShadowLoop>| {
        let (ghosts, _) = shadow.list(None, "", "", 10).await.expect("it is readable");
        let (log, _) = shadow.log(None, "", 10).await.expect("it is readable");
        let ghosts: Vec<String> = ghosts.into_iter().map(|ghost| ghost.id).collect();
        (ghosts, log.into_iter().map(|entry| entry.id).collect::<Vec<_>>())
    };
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(shown(&second).await, (ids(&["B2", "A1"]), ids(&["B2", "A1"])));
    first.forget_sender("ada").await.expect("it is forgotten");
    for shadow in [&first, &second] {
        assert_eq!(shown(shadow).await, (ids(&["B2"]), ids(&["B2"])));
        assert!(shadow.get(None, "A1").await.is_err());
        assert!(shadow.stats("ada").await.expect("it is readable").triggers.is_empty());
        assert!(shadow.open_goals().await.is_empty());
    }
    assert!(second.watchers.of("ada").is_none() && second.watchers.of("bob").is_some());
    let known = second.stats("bob").await.expect("it is readable");
    assert_eq!(known.triggers[0].observations, 2);
    // Whoever follows from the beginning hears of nobody else.
    let mut follower = second.follow(Audience::Everybody, Some(0), false).expect("there is room");
    assert!(matches!(follower.next().await.kind, Some(Kind::Ghost(ghost)) if ghost.id == "B2"));
    assert!(matches!(follower.next().await.kind, Some(Kind::CaughtUp(_))));
    // A watcher that goes on is one of a person that nothing is known of.
    let again = second.observe("ada", finding("one")).await.expect("it is taken");
    assert_eq!(again.verdicts[0].verdict, "taken");
    assert_eq!(second.stats("ada").await.expect("it is readable").triggers[0].observations, 1);
    // Nothing in memory alone: time passes for who shows nothing.
    first.forget_sender("bob").await.expect("it is forgotten");
    second.tidy().await.expect("it is stored");
    assert!(second.inner.lock().await.stored.ghosts.is_empty());
}

// Promises: SHADOW-23, SHADOW-48
#[tokio::test]
async fn a_goal_waits_until_its_ghost_is_decided_about() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = database(&directory).await;
    let first = agent(&store).await;
    for (id, word, step) in [
        ("A1", "dismiss", GoalStep::Close),
        ("B2", "custom", GoalStep::Begin { sender: "ada".to_owned(), goal: String::new() }),
    ] {
        make(&first, id, "ada").await;
        // The first one is about to approve it, or was killed then.
        assert_eq!(first.store.put_goal(id, "Mend it.").await.expect("it is stored"), None);
        let second = agent(&store).await;
        assert_eq!(only_step(&second).await, GoalStep::Wait, "{id}");
        first.decide(None, "ada", decision(id, word)).await.expect("it waits");
        let goal = first.store.goal(id).await.expect("it is readable").expect("a goal");
        match (only_step(&second).await, step) {
            (GoalStep::Begin { sender, goal: begun }, GoalStep::Begin { sender: wanted, .. }) => {
                assert_eq!((&begun, sender), (&goal, wanted));
                assert!(begun.starts_with("Run tests"), "{begun}");
            }
            (now, wanted) => assert_eq!(now, wanted, "{id}"),
        }
        second.close_goal(id).await.expect("it is stored");
        assert!(second.open_goals().await.is_empty());
    }
}

// Promises: SHADOW-48
#[tokio::test]
async fn who_approves_too_late_leaves_the_goal_of_the_other_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = database(&directory).await;
    let first = agent(&store).await;
    make(&first, "A1", "ada").await;
    let (second, third) = (agent(&store).await, agent(&store).await);
    first.decide(None, "ada", decision("A1", "custom")).await.expect("it waits");
    let late = second.decide(None, "ada", decision("A1", "approve")).await.expect_err("it is decided");
    assert!(matches!(&late, ShadowError::Decided { state } if state == APPROVED), "{late}");
    let goal = first.store.goal("A1").await.expect("it is readable").expect("a goal");
    assert!(goal.starts_with("Run tests"), "{goal}");
    // Its turn has begun; a goal that is stored now would begin another one.
    first.close_goal("A1").await.expect("it is stored");
    third.decide(None, "ada", decision("A1", "approve")).await.expect_err("it is decided");
    assert_eq!(first.store.goal("A1").await.expect("it is readable"), None);

    // Both at the same moment: who loses takes back its own goal alone.
    let (one, other) = (Some(b"one".to_vec()), Some(b"other".to_vec()));
    for (loser, before, left) in [("one", None, "other"), ("other", one.clone(), "one")] {
        assert_eq!(first.store.put_goal("B2", "one").await.expect("it is stored"), None);
        assert_eq!(second.store.put_goal("B2", "other").await.expect("it is stored"), one);
        second.store.take_back_goal("B2", loser, before).await.expect("it is stored");
        assert_eq!(first.store.goal("B2").await.expect("it is readable").as_deref(), Some(left));
        first.store.remove_goal("B2").await.expect("it is stored");
    }
    first.store.take_back_goal("B2", "other", other).await.expect("nothing to take back");
    assert_eq!(first.store.goal("B2").await.expect("it is readable"), None);
}
