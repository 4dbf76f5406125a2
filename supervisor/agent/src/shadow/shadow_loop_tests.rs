use talon_store::{Engine, Store, StoreOptions};

use super::*;

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
