use async_trait::async_trait;
use talon_agent_settings::{EmbeddingKeys, MemoryKeys, TimeSpan};
use talon_llm::model::{Answer, EmbeddingRequest, Request};
use talon_llm::{ChunkListener, Provider};
use talon_store::{Engine, NewMemory, Store, StoreOptions};

use super::super::StoreRecall;
use super::*;
use crate::driver::{Caller, Recall, Recollection};

/// Makes vectors by topics: how often a text names something of tea, of trains, and of anything else.
#[derive(Default)]
struct Topics {
    asked: Mutex<Vec<Vec<String>>>,
    error: Mutex<Option<ErrorClass>>,
    /// A text of which it makes no vector.
    refuses: Mutex<Option<String>>,
    /// Numbers that it adds to each vector.
    longer: Mutex<usize>,
}

const TEA: [&str; 3] = ["tea", "kettle", "Tee"];
const TRAINS: [&str; 3] = ["train", "rail", "Bahn"];

#[async_trait]
impl Provider for Topics {
    fn name(&self) -> &str {
        "topics"
    }

    async fn ask(&self, _: &Request, _: &mut dyn ChunkListener) -> Result<Answer, ProviderError> {
        Ok(Answer::default())
    }

    async fn embed(&self, request: &EmbeddingRequest) -> Result<Vec<Vec<f32>>, ProviderError> {
        self.asked.lock().push(request.texts.clone());
        let refused = self.refuses.lock().clone();
        let is_refused =
            refused.is_some_and(|refused| request.texts.iter().any(|text| text.contains(&refused)));
        if let Some(class) = if is_refused { Some(ErrorClass::Request) } else { *self.error.lock() } {
            return Err(ProviderError {
                provider: "topics".to_owned(),
                class,
                status: None,
                message: "no vectors today".to_owned(),
                retry_after: None,
            });
        }
        let longer = *self.longer.lock();
        let vector = |text: &String| {
            let count = |words: [&str; 3]| words.iter().filter(|word| text.contains(**word)).count() as f32;
            let mut vector = vec![count(TEA), count(TRAINS), 0.1];
            vector.resize(3 + longer, 0.1);
            vector
        };
        Ok(request.texts.iter().map(vector).collect())
    }

    async fn probe(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

struct Setting {
    _directory: tempfile::TempDir,
    store: Store,
    topics: Arc<Topics>,
    index: Arc<MemoryIndex>,
}

impl Setting {
    async fn new() -> Self {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join("agent/agent.db");
        let store = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a directory of our own");
        let topics = Arc::<Topics>::default();
        let index = index(&store, &topics, "one", true);
        Self { _directory: directory, store, topics, index }
    }

    async fn fact(&self, content: &str, tags: &[&str]) -> MemoryId {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let fact = NewMemory { content: content.to_owned(), tags, source: "test".to_owned(), workflow: None };
        self.store.memory().remember(fact).await.expect("there is room").memory.id
    }

    async fn make(&self, index: &MemoryIndex) -> Duration {
        loop {
            let wait = index.make_some().await;
            if !wait.is_zero() {
                return wait;
            }
        }
    }

    async fn recall(&self, request: &str, pins: &Pins) -> Recollection {
        let recall = StoreRecall::new(self.store.memory(), MemoryKeys::default());
        let recall = recall.with_index(Some(Arc::clone(&self.index)));
        recall.recall(&caller(), request, pins).await
    }

    async fn report(&self) -> IndexReport {
        self.index.report().await.expect("the store is open")
    }
}

fn index(store: &Store, topics: &Arc<Topics>, model: &str, is_local: bool) -> Arc<MemoryIndex> {
    let keys = EmbeddingKeys {
        provider: "topics".to_owned(),
        model: model.to_owned(),
        dimensions: None,
        query_prefix: "q: ".to_owned(),
        tool_prefix: "d: ".to_owned(),
        cost: None,
        timeout: TimeSpan::from_secs(60),
    };
    let embedder = Embedder::new(&keys, topics.clone(), is_local);
    Arc::new(MemoryIndex::new(embedder, store.memory_vectors(), Arc::default()))
}

fn caller() -> Caller {
    Caller { session: "S".to_owned(), turn: 1, sender: "alice".to_owned(), ..Caller::default() }
}

fn confined() -> Pins {
    Pins { local_only: true, ..Pins::default() }
}

// Promises: AGENT-140
#[tokio::test]
async fn a_memory_is_found_by_its_meaning_and_by_its_words() {
    let setting = Setting::new().await;
    setting.fact("Ada puts the kettle on at four", &["sender:alice"]).await;
    setting.fact("the rail pass ends in May", &["sender:alice"]).await;
    setting.fact("Bob drinks tea", &["sender:bob"]).await;
    // By words alone nothing is in common.
    let request = "When does Ada want her Tee?";
    assert_eq!(setting.make(&setting.index).await, RECHECK);
    let found = setting.recall(request, &Pins::default()).await;
    assert_eq!(found.memories, ["Ada puts the kettle on at four"]);
    assert_eq!((found.model.as_deref(), found.by_words), (Some("topics/one"), None));
    let asked = setting.topics.asked.lock().clone();
    assert_eq!(asked.last().expect("it was asked"), &[format!("q: {request}")]);
    assert!(asked[0].iter().all(|text| text.starts_with("d: ")), "{asked:?}");
    // A new one without a vector is found by its words.
    setting.fact("Ada has an umbrella", &["sender:alice"]).await;
    let found = setting.recall("Has Ada an umbrella?", &Pins::default()).await;
    assert!(found.memories.contains(&"Ada has an umbrella".to_owned()), "{found:?}");
}

// Promises: AGENT-141
#[tokio::test(start_paused = true)]
async fn without_its_model_memories_are_found_by_words_and_it_is_said() {
    let setting = Setting::new().await;
    setting.fact("Ada drinks tea", &["sender:alice"]).await;
    *setting.topics.error.lock() = Some(ErrorClass::Network);
    assert_eq!(setting.index.make_some().await, FIRST_WAIT);
    // Until then it is not asked.
    let asked = setting.topics.asked.lock().len();
    assert!(setting.index.make_some().await <= FIRST_WAIT);
    assert_eq!(setting.topics.asked.lock().len(), asked);
    tokio::time::advance(FIRST_WAIT).await;
    assert_eq!(setting.index.make_some().await, FIRST_WAIT * 2);
    let report = setting.report().await;
    assert_eq!((report.counts.memories, report.counts.vectors), (1, 0));
    assert!(report.failure.is_some_and(|why| why.contains("no vectors today")));

    let found = setting.recall("tea for Ada", &Pins::default()).await;
    assert_eq!((found.memories.len(), found.model), (1, None));
    assert!(found.by_words.is_some_and(|why| why.contains("no vectors today")));
    // The next turn does not wait for it again.
    let asked = setting.topics.asked.lock().len();
    assert!(setting.recall("tea for Ada", &Pins::default()).await.by_words.is_some());
    assert_eq!(setting.topics.asked.lock().len(), asked);

    *setting.topics.error.lock() = None;
    tokio::time::advance(QUERY_REST).await;
    assert_eq!(setting.make(&setting.index).await, RECHECK);
    assert_eq!(setting.recall("tea for Ada", &Pins::default()).await.by_words, None);
    assert_eq!(setting.report().await.failure, None);
}

// Promises: AGENT-142
#[tokio::test]
async fn what_stays_on_this_machine_or_with_one_model_is_seen_by_no_other() {
    let setting = Setting::new().await;
    setting.fact("Ada drinks tea", &["sender:alice"]).await;
    setting.fact("the tea is a secret", &["sender:alice", LOCAL_TAG]).await;
    let elsewhere = index(&setting.store, &setting.topics, "one", false);
    assert_eq!(setting.make(&elsewhere).await, RECHECK);
    assert_eq!(*setting.topics.asked.lock(), [["d: Ada drinks tea"]]);
    let report = elsewhere.report().await.expect("the store is open");
    assert_eq!((report.counts.memories, report.counts.vectors, report.counts.excepted), (1, 1, 1));
    for pins in [confined(), Pins { session: Some("p/m".to_owned()), ..Pins::default() }] {
        let refused = elsewhere.near(&pins, "tea", "sender:alice", false, 5).await;
        assert!(refused.is_err_and(|why| why.0.contains("is not on this machine")));
    }
    assert_eq!(setting.topics.asked.lock().len(), 1);
    // One on this machine sees all.
    assert_eq!(setting.make(&setting.index).await, RECHECK);
    let report = setting.report().await;
    assert_eq!((report.counts.memories, report.counts.vectors), (2, 2));
    assert_eq!(setting.recall("tea", &confined()).await.memories.len(), 2);
}

// Promises: AGENT-144
#[tokio::test(start_paused = true)]
async fn another_model_and_another_length_make_all_vectors_again() {
    let setting = Setting::new().await;
    for content in ["tea", "trains", "both tea and trains"] {
        setting.fact(content, &["sender:alice"]).await;
    }
    setting.make(&setting.index).await;
    let two = index(&setting.store, &setting.topics, "two", true);
    setting.make(&two).await;
    let report = two.report().await.expect("the store is open");
    assert_eq!((report.counts.vectors, report.counts.others, report.counts.numbers), (3, 0, Some(3)));
    // Its provider serves another model under the same name.
    *setting.topics.longer.lock() = 2;
    let refused = two.near(&Pins::default(), "tea", "sender:alice", false, 5).await;
    assert!(refused.is_err_and(|why| why.0.contains("5 numbers now")));
    setting.make(&two).await;
    let report = two.report().await.expect("the store is open");
    assert_eq!((report.counts.vectors, report.counts.numbers), (3, Some(5)));
    let near = two.near(&Pins::default(), "tea", "sender:alice", false, 5).await.expect("it answers");
    assert_eq!(near[0].content, "tea");
    // One that answers with this and then that is not obeyed.
    *setting.topics.longer.lock() = 0;
    setting.fact("more tea", &[]).await;
    assert_eq!(two.make_some().await, FIRST_WAIT);
    let report = two.report().await.expect("the store is open");
    assert_eq!((report.counts.vectors, report.counts.memories), (3, 4));
    assert!(report.failure.is_some_and(|why| why.contains("another length a moment ago")));
}

#[tokio::test]
async fn a_memory_that_the_model_refuses_keeps_no_other_from_a_vector() {
    let setting = Setting::new().await;
    for content in ["tea", "poison", "trains"] {
        setting.fact(content, &["sender:alice"]).await;
    }
    *setting.topics.refuses.lock() = Some("poison".to_owned());
    assert_eq!(setting.make(&setting.index).await, RECHECK);
    let report = setting.report().await;
    assert_eq!((report.counts.vectors, report.counts.memories, report.refused), (2, 3, 1));
    assert_eq!(report.failure, None);
    // Nothing is marked where it refuses everything.
    *setting.topics.refuses.lock() = Some(String::new());
    for content in ["more tea", "more trains"] {
        setting.fact(content, &["sender:alice"]).await;
    }
    assert_eq!(setting.index.make_some().await, FIRST_WAIT);
    assert_eq!(setting.report().await.refused, 1);
}
