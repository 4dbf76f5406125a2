use talon_proto::agent::{DecideGhostRequest, GetGhostResponse, ShadowLogEntry};
use talon_store::{Engine, Store, StoreOptions};

use super::*;
use crate::shadow::pending_question::PendingQuestion;

async fn opened(directory: &tempfile::TempDir) -> (Store, Arc<ShadowLoop>) {
    let path = directory.path().join("private").join("agent.db");
    let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
    let notifier = Notifier::new(store.outbox());
    let shadow = ShadowLoop::open(
        store.key_values(),
        notifier,
        &ShadowKeys::default(),
        Arc::default(),
        EventBus::default(),
    )
    .await;
    (store, shadow.expect("a loop"))
}

/// Has a question of this person wait, with an entry of this name.
async fn ask_for(shadow: &ShadowLoop, sender: &str) {
    let mut record = SenderRecord::new(sender);
    record.policy.asking = Some("o1".to_owned());
    record.entry = Some(format!("of-{sender}"));
    shadow.inner.lock().await.stored.senders.insert(sender.to_owned(), record);
}

#[tokio::test]
async fn everybody_has_a_turn_before_the_same_person_is_asked_for_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_store, shadow) = opened(&directory).await;
    assert!(shadow.next_question("").await.is_none());
    for sender in ["ada", "bob", "eve"] {
        ask_for(&shadow, sender).await;
    }
    let mut last = String::new();
    for next in ["ada", "bob", "eve", "ada"] {
        last = shadow.next_question(&last).await.expect("a question").sender;
        assert_eq!(last, next);
    }
}

#[tokio::test]
async fn what_an_answer_cost_counts_although_it_was_not_noted_of_its_sender() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_store, shadow) = opened(&directory).await;
    let answered = |sender: &str, outcome: &str| ShadowLogEntry {
        id: format!("of-{sender}"),
        sender: sender.to_owned(),
        outcome: outcome.to_owned(),
        input_tokens: 10,
        output_tokens: 5,
        cost_pico_usd: 7,
        ..ShadowLogEntry::default()
    };
    for sender in ["ada", "bob", "eve"] {
        ask_for(&shadow, sender).await;
    }
    // Of the first one the ghost was stored, of the second one the log, and the third one is being asked.
    let ghost = GetGhostResponse { sent: Some(answered("ada", "ghost")), ..GetGhostResponse::default() };
    {
        let mut inner = shadow.inner.lock().await;
        inner.stored.ghosts.insert("of-ada".to_owned(), ghost);
        for entry in [answered("ada", ASKING), answered("bob", "nothing"), answered("eve", ASKING)] {
            inner.stored.log.insert(entry.id.clone(), entry);
        }
    }
    assert_eq!(shadow.answered_entry("of-eve").await, None);
    for (sender, outcome) in [("ada", "ghost"), ("bob", "nothing")] {
        let entry = answered(sender, outcome);
        let known = shadow.answered_entry(&entry.id).await.expect("it was answered");
        assert_eq!(known, entry);
        let question = PendingQuestion {
            sender: sender.to_owned(),
            entry: entry.id.clone(),
            observation: Observation { id: "o1".to_owned(), ..Observation::default() },
            spent_pico_usd: 0,
        };
        shadow.settle(question, known, None).await.expect("it is stored");
        let inner = shadow.inner.lock().await;
        let record = &inner.stored.senders[sender];
        assert_eq!((record.policy.spent(now()).pico_usd, record.entry.as_deref()), (7, None));
        assert_eq!(inner.stored.log[&entry.id], entry);
    }
}

/// Two agents with one database: both were started while a question was being asked.
// Promises: SHADOW-48
#[tokio::test]
async fn agents_with_one_database_make_a_ghost_once_and_decide_about_it_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let (store, first) = opened(&directory).await;
    let (keys, notifier) = (ShadowKeys::default(), Notifier::new(store.outbox()));
    let second = ShadowLoop::open(store.key_values(), notifier, &keys, Arc::default(), EventBus::default());
    let second = second.await.expect("a loop");
    let found = |id: &str| GetGhostResponse {
        ghost: Some(Ghost {
            id: id.to_owned(),
            sender: "ada".to_owned(),
            state: WAITING.to_owned(),
            proposal: "Mend it.".to_owned(),
            expires_unix_ms: u64::MAX,
            ..Ghost::default()
        }),
        ..GetGhostResponse::default()
    };
    let decision = |id: &str, word: &str| DecideGhostRequest {
        id: id.to_owned(),
        decision: word.to_owned(),
        ..DecideGhostRequest::default()
    };
    let settle = async |shadow: &Arc<ShadowLoop>| {
        let observation = Observation { id: "o1".to_owned(), ..Observation::default() };
        let question = PendingQuestion {
            sender: "ada".to_owned(),
            entry: "A1".to_owned(),
            observation,
            spent_pico_usd: 0,
        };
        let entry =
            ShadowLogEntry { id: "A1".to_owned(), outcome: "ghost".to_owned(), ..ShadowLogEntry::default() };
        shadow.settle(question, entry, Some(found("A1"))).await.expect("it is stored");
    };
    for shadow in [&first, &second] {
        let mut record = SenderRecord::new("ada");
        (record.policy.asking, record.entry) = (Some("o1".to_owned()), Some("A1".to_owned()));
        shadow.inner.lock().await.stored.senders.insert("ada".to_owned(), record);
    }
    settle(&first).await;
    let dismissed = first.decide(None, "ada", decision("A1", "dismiss")).await.expect("it waits");
    assert_eq!(dismissed.state, DISMISSED);
    // The other one asked as well, and knows nothing of this.
    settle(&second).await;
    let (ghosts, _) = second.list(None, "", "", 10).await.expect("it is readable");
    assert_eq!((ghosts.len(), ghosts[0].state.as_str()), (1, DISMISSED), "{ghosts:?}");

    // Of a ghost that both know one decides, and the other one comes too late.
    for (id, first_word, second_word) in [("B2", "approve", "dismiss"), ("C3", "dismiss", "approve")] {
        let known = found(id);
        first.store.create_ghost(id, &known).await.expect("it is stored");
        for shadow in [&first, &second] {
            shadow.inner.lock().await.stored.ghosts.insert(id.to_owned(), known.clone());
        }
        let decided = first.decide(None, "ada", decision(id, first_word)).await.expect("it waits");
        let late = second.decide(None, "ada", decision(id, second_word)).await.expect_err("it is decided");
        assert!(matches!(&late, ShadowError::Decided { state } if *state == decided.state), "{late}");
        assert_eq!(second.open_goals().await.len(), 0, "no turn begins here");
        let stored = first.store.load().await.expect("it is readable");
        assert_eq!(stored.goals.contains_key(id), first_word == "approve", "{id}");
        assert_eq!(stored.ghosts[id].ghost.as_ref().map(|ghost| ghost.state.clone()), Some(decided.state));
    }
}

// Promises: SHADOW-84
#[tokio::test]
async fn nothing_is_kept_longer_than_the_configuration_says() {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let directory = tempfile::tempdir().expect("a directory");
    let (_store, shadow) = opened(&directory).await;
    shadow.configure(&ShadowKeys { keep_days: 2, ..ShadowKeys::default() });
    let now = unix_ms();
    for (id, age, state) in [
        ("A1", 3 * DAY_MS, DISMISSED),
        ("B2", DAY_MS, DISMISSED),
        // It expires now, and is over since then.
        ("C3", 3 * DAY_MS, WAITING),
        ("D4", 3 * DAY_MS, SNOOZED),
    ] {
        let ghost = Ghost {
            id: id.to_owned(),
            state: state.to_owned(),
            created_unix_ms: now - age,
            expires_unix_ms: now - age,
            snoozed_until_unix_ms: Some(now + DAY_MS),
            ..Ghost::default()
        };
        let found = GetGhostResponse { ghost: Some(ghost), ..GetGhostResponse::default() };
        let entry = ShadowLogEntry { id: id.to_owned(), unix_ms: now - age, ..ShadowLogEntry::default() };
        let mut inner = shadow.inner.lock().await;
        shadow.create(&mut inner, id, found).await.expect("it is stored");
        shadow.store.put_log(&entry).await.expect("it is stored");
        inner.stored.log.insert(id.to_owned(), entry);
    }
    // It waits for a boundary that does not come.
    let mut record = SenderRecord::new("ada");
    let seen = Observation { id: "o1".to_owned(), excerpt: "private".to_owned(), ..Observation::default() };
    record.policy.waiting.push(Candidate {
        id: "o1".to_owned(),
        trigger: "test_failed".to_owned(),
        repository: String::new(),
        fingerprint: "f".to_owned(),
        boundary: false,
        at_ms: now - 16 * 60 * 1000,
    });
    record.keep(&seen);
    shadow.inner.lock().await.stored.senders.insert("ada".to_owned(), record);
    shadow.tidy().await.expect("it is stored");
    let stored = shadow.store.load().await.expect("it is readable");
    let ids = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(ids(stored.ghosts.keys().collect()), ["B2", "D4"]);
    assert_eq!(ids(stored.log.keys().collect()), ["B2"]);
    let record = &stored.senders["ada"];
    assert!(record.policy.waiting.is_empty() && record.observation("o1").is_none());
    let inner = shadow.inner.lock().await;
    assert_eq!((inner.stored.ghosts.len(), inner.stored.log.len()), (2, 1));
}

// Promises: SHADOW-34
#[tokio::test]
async fn a_watcher_is_heard_without_its_secrets_and_only_while_the_loop_is_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_store, shadow) = opened(&directory).await;
    let limits = [format!("cannot watch ghp_{}", "a1B2".repeat(9))];
    shadow.hear_watcher("ada", &limits);
    assert!(shadow.watchers.of("ada").is_none(), "the loop is off");
    shadow.configure(&ShadowKeys { enabled: true, ..ShadowKeys::default() });
    shadow.hear_watcher("ada", &limits);
    let heard = shadow.watchers.of("ada").expect("it was heard");
    assert_eq!(heard.limits, ["cannot watch [redacted: github token]"]);
}
