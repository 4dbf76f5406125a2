//! Two agents with one database, of which one forgets a person while the other one is in the middle of something.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use talon_agent_settings::ShadowKeys;
use talon_proto::agent::{DecideGhostRequest, GetGhostResponse, Ghost, Observation, ShadowLogEntry};
use talon_store::{
    Engine, Entry, Key, KeySize, KeyValues, Namespace, Page, PageRequest, PluginId, Store, StoreOptions,
    SwapResult, Usage,
};

use super::*;
use crate::notify::Notifier;
use crate::shadow::goal::GoalStep;
use crate::shadow::pending_question::PendingQuestion;
use crate::shadow::record::SenderRecord;
use crate::shadow::shadow_loop::{ASKING, WAITING};

type Interruption = Pin<Box<dyn Future<Output = ()> + Send>>;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    /// A value is about to be set.
    BeforeSet,
    /// All values were read, and who asked for them does not know them yet.
    AfterRead,
}

/// Key-values during whose next operation of a kind something else happens.
struct InterruptedKeyValues {
    inner: Arc<dyn KeyValues>,
    interruption: Mutex<Option<(Moment, Interruption)>>,
}

impl InterruptedKeyValues {
    fn of(store: &Store) -> Arc<Self> {
        Arc::new(Self { inner: store.key_values(), interruption: Mutex::default() })
    }

    fn interrupt(&self, moment: Moment, interruption: impl Future<Output = ()> + Send + 'static) {
        *self.interruption.lock() = Some((moment, Box::pin(interruption)));
    }

    fn was_interrupted(&self) -> bool {
        self.interruption.lock().is_none()
    }

    async fn at(&self, moment: Moment) {
        let due = self.interruption.lock().take_if(|(wanted, _)| *wanted == moment);
        if let Some((_, interruption)) = due {
            interruption.await;
        }
    }
}

#[async_trait]
impl KeyValues for InterruptedKeyValues {
    async fn get(&self, plugin: &PluginId, key: &Key) -> Result<Option<Vec<u8>>, Error> {
        self.inner.get(plugin, key).await
    }

    async fn set(&self, namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<(), Error> {
        self.at(Moment::BeforeSet).await;
        self.inner.set(namespace, key, value).await
    }

    async fn delete(&self, plugin: &PluginId, key: &Key) -> Result<bool, Error> {
        self.inner.delete(plugin, key).await
    }

    async fn keys(&self, plugin: &PluginId, prefix: &str, page: &PageRequest) -> Result<Page<Key>, Error> {
        self.inner.keys(plugin, prefix, page).await
    }

    async fn sizes(
        &self,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
    ) -> Result<Page<KeySize>, Error> {
        self.inner.sizes(plugin, prefix, page).await
    }

    async fn entries(
        &self,
        plugin: &PluginId,
        prefix: &str,
        page: &PageRequest,
    ) -> Result<Page<Entry>, Error> {
        let read = self.inner.entries(plugin, prefix, page).await;
        self.at(Moment::AfterRead).await;
        read
    }

    async fn import(&self, namespace: &Namespace, key: &Key, value: Vec<u8>) -> Result<bool, Error> {
        self.inner.import(namespace, key, value).await
    }

    async fn compare_and_set(
        &self,
        namespace: &Namespace,
        key: &Key,
        expected: Option<Vec<u8>>,
        value: Option<Vec<u8>>,
    ) -> Result<SwapResult, Error> {
        self.inner.compare_and_set(namespace, key, expected, value).await
    }

    async fn purge(&self, plugin: &PluginId) -> Result<Usage, Error> {
        self.inner.purge(plugin).await
    }

    async fn usage(&self, plugin: &PluginId) -> Result<Usage, Error> {
        self.inner.usage(plugin).await
    }

    async fn plugins(&self, page: &PageRequest) -> Result<Page<(PluginId, Usage)>, Error> {
        self.inner.plugins(page).await
    }
}

async fn database(directory: &tempfile::TempDir) -> Store {
    let path = directory.path().join("private").join("agent.db");
    StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store")
}

/// An agent's loop, with what is stored now.
async fn agent(store: &Store, key_values: Arc<dyn KeyValues>) -> Arc<ShadowLoop> {
    let keys = ShadowKeys { enabled: true, ..ShadowKeys::default() };
    let (notifier, bus) = (Notifier::new(store.outbox()), talon_event_bus::EventBus::default());
    ShadowLoop::open(key_values, notifier, &keys, Arc::default(), bus).await.expect("a loop")
}

/// Has a question about eve wait to be asked.
async fn ask_for_eve(shadow: &ShadowLoop) {
    let mut record = SenderRecord::new("eve");
    (record.policy.asking, record.entry) = (Some("o1".to_owned()), Some("E3".to_owned()));
    assert!(shadow.store_sender(&mut *shadow.inner.lock().await, record).await.expect("it is stored"));
}

fn asked() -> ShadowLogEntry {
    ShadowLogEntry {
        id: "E3".to_owned(),
        sender: "eve".to_owned(),
        outcome: ASKING.to_owned(),
        ..ShadowLogEntry::default()
    }
}

async fn settle(shadow: &Arc<ShadowLoop>) {
    let question = PendingQuestion {
        sender: "eve".to_owned(),
        entry: "E3".to_owned(),
        observation: Observation { id: "o1".to_owned(), ..Observation::default() },
        spent_pico_usd: 0,
    };
    shadow.settle(question, asked(), Some(found("E3"))).await.expect("it is stored");
}

/// A ghost of eve's that waits.
fn found(id: &str) -> GetGhostResponse {
    let ghost = Ghost {
        id: id.to_owned(),
        sender: "eve".to_owned(),
        state: WAITING.to_owned(),
        proposal: "Mend it.".to_owned(),
        expires_unix_ms: u64::MAX,
        ..Ghost::default()
    };
    GetGhostResponse { ghost: Some(ghost), ..GetGhostResponse::default() }
}

async fn assert_nothing_is_left(shadow: &ShadowLoop) {
    let stored = shadow.store.load().await.expect("it is readable");
    assert!(stored.senders.is_empty() && stored.ghosts.is_empty() && stored.goals.is_empty());
    assert!(stored.log.is_empty(), "{:?}", stored.log);
}

#[tokio::test]
async fn of_who_is_forgotten_before_a_question_is_noted_nothing_is_sent_and_nothing_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = database(&directory).await;
    let first = agent(&store, store.key_values()).await;
    ask_for_eve(&first).await;
    let interrupted = InterruptedKeyValues::of(&store);
    let second = agent(&store, Arc::clone(&interrupted) as _).await;
    // The second one has looked for what it is to remove.
    let noting = Arc::clone(&first);
    interrupted.interrupt(Moment::AfterRead, async move {
        assert!(!noting.note(asked()).await.expect("it is readable"), "it may not be sent");
    });
    second.forget_sender("eve").await.expect("it is forgotten");
    assert!(interrupted.was_interrupted());
    assert!(first.next_question("").await.is_none());
    assert_nothing_is_left(&second).await;
}

#[tokio::test]
async fn of_who_is_forgotten_while_a_question_is_noted_nothing_is_sent_and_nothing_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = database(&directory).await;
    let interrupted = InterruptedKeyValues::of(&store);
    let first = agent(&store, Arc::clone(&interrupted) as _).await;
    ask_for_eve(&first).await;
    let second = agent(&store, store.key_values()).await;
    interrupted.interrupt(Moment::BeforeSet, async move {
        second.forget_sender("eve").await.expect("it is forgotten");
    });
    assert!(!first.note(asked()).await.expect("it is stored"), "it may not be sent");
    assert!(interrupted.was_interrupted());
    assert_nothing_is_left(&first).await;
}

#[tokio::test]
async fn of_who_is_forgotten_while_a_question_is_asked_nothing_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = database(&directory).await;
    let first = agent(&store, store.key_values()).await;
    ask_for_eve(&first).await;
    // Another agent removed the person, and is killed before it removes what it found.
    first.store.remove_sender("eve").await.expect("it is stored");
    assert!(first.note(asked()).await.expect("it is stored"), "it is not known yet");
    first.store.advance_forget_epoch().await.expect("it is stored");
    settle(&first).await;
    assert_nothing_is_left(&first).await;
}

#[tokio::test]
async fn no_turn_begins_here_of_who_was_forgotten_or_whose_turn_has_begun() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = database(&directory).await;
    let first = agent(&store, store.key_values()).await;
    for id in ["A1", "B2"] {
        first.create(&mut *first.inner.lock().await, id, found(id)).await.expect("it is stored");
        let approval = DecideGhostRequest {
            id: id.to_owned(),
            decision: "approve".to_owned(),
            ..DecideGhostRequest::default()
        };
        first.decide(None, "eve", approval).await.expect("it waits");
    }
    // It knows both as approved.
    let second = agent(&store, store.key_values()).await;
    assert_eq!(second.open_goals().await, ["A1", "B2"]);
    first.close_goal("A1").await.expect("it is stored");
    assert_eq!(second.goal_step("A1").await.expect("it is readable"), GoalStep::Close);
    let begun = second.goal_step("B2").await.expect("it is readable");
    assert!(matches!(begun, GoalStep::Begin { sender, .. } if sender == "eve"));
    first.forget_sender("eve").await.expect("it is forgotten");
    assert_eq!(second.goal_step("B2").await.expect("it is readable"), GoalStep::Close);
}
