use std::collections::BTreeSet;

use talon_agent_settings::EmbeddingKeys;
use talon_llm::ChunkListener;
use talon_llm::Provider;
use talon_llm::model::{Answer, EmbeddingRequest, ErrorClass, ProviderError, Request};
use talon_store::{Engine, Key, Namespace, PageRequest, PluginId, Store, StoreOptions};
use tokio::sync::Semaphore;

use super::*;

/// Makes a vector of how often a text has each letter; records what it was asked.
struct Letters {
    asked: Mutex<Vec<Vec<String>>>,
    /// Requests that may still be answered.
    open: Semaphore,
    fails: Mutex<bool>,
}

impl Letters {
    fn new(answers: usize) -> Arc<Self> {
        Arc::new(Self { asked: Mutex::default(), open: Semaphore::new(answers), fails: Mutex::default() })
    }

    /// The texts of tools that it was asked about.
    fn tools(&self) -> Vec<String> {
        self.asked.lock().iter().flatten().filter(|text| !text.starts_with("q: ")).cloned().collect()
    }
}

#[async_trait]
impl Provider for Letters {
    fn name(&self) -> &str {
        "letters"
    }

    async fn ask(&self, _: &Request, _: &mut dyn ChunkListener) -> Result<Answer, ProviderError> {
        Ok(Answer::default())
    }

    async fn embed(&self, request: &EmbeddingRequest) -> Result<Vec<Vec<f32>>, ProviderError> {
        self.asked.lock().push(request.texts.clone());
        // Queries are answered whatever is closed.
        if !request.texts[0].starts_with("q: ") {
            self.open.acquire().await.expect("it is not closed").forget();
        }
        if *self.fails.lock() {
            return Err(ProviderError {
                provider: "letters".to_owned(),
                class: ErrorClass::RateLimit,
                status: Some(429),
                message: "too many requests".to_owned(),
                retry_after: None,
            });
        }
        let vector = |text: &String| {
            let text = text.trim_start_matches("q: ");
            (b'a'..=b'z').map(|letter| text.bytes().filter(|byte| *byte == letter).count() as f32).collect()
        };
        Ok(request.texts.iter().map(vector).collect())
    }

    async fn probe(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

async fn store(directory: &tempfile::TempDir) -> Store {
    let path = directory.path().join("private").join("agent.db");
    StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store")
}

fn keys(model: &str) -> EmbeddingKeys {
    EmbeddingKeys {
        provider: "letters".to_owned(),
        model: model.to_owned(),
        dimensions: None,
        query_prefix: "q: ".to_owned(),
        tool_prefix: String::new(),
        cost: None,
        timeout: TimeSpan::from_secs(60),
    }
}

fn vectors(model: &str, letters: &Arc<Letters>, store: &Store) -> ToolVectors {
    ToolVectors::new(Embedder::new(&keys(model), letters.clone(), true), store.key_values())
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

async fn stored(store: &Store) -> usize {
    let plugin = PluginId::new("agent-tool-vectors").expect("a name");
    store.key_values().keys(&plugin, "", &PageRequest::first(1000)).await.expect("read").items.len()
}

// Promises: AGENT-111
#[tokio::test]
async fn a_tools_vector_is_made_once_for_its_text_and_survives_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let letters = Letters::new(100);
    let ours = vectors("one", &letters, &kept);
    let similar = ours.compare("cab", &texts(&["abc", "xyz", "abc"])).await.expect("compared");
    assert_eq!(similar, [1.0, 0.0, 1.0]);
    ours.compare("xyz", &texts(&["abc", "xyz"])).await.expect("compared");
    ours.compare("xyz", &texts(&["abc", "new"])).await.expect("compared");
    assert_eq!(letters.tools(), ["abc", "xyz", "new"]);
    // Of another process.
    vectors("one", &letters, &kept).compare("xyz", &texts(&["new", "xyz"])).await.expect("compared");
    assert_eq!((letters.tools().len(), stored(&kept).await), (3, 3));
    // Another model's have nothing to do with them, and replace them.
    vectors("two", &letters, &kept).compare("xyz", &texts(&["new"])).await.expect("compared");
    assert_eq!((letters.tools().len(), stored(&kept).await), (4, 1));
}

// Promises: AGENT-111
#[tokio::test]
async fn many_are_made_in_batches_and_those_of_gone_tools_make_room() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let letters = Letters::new(1000);
    let ours = vectors("one", &letters, &kept);
    let many = |from: usize, n: usize| -> Vec<String> { (from..from + n).map(|n| format!("a{n}")).collect() };
    ours.compare("a", &many(0, 250)).await.expect("compared");
    let batches: Vec<usize> =
        letters.asked.lock().iter().filter(|asked| !asked[0].starts_with("q: ")).map(Vec::len).collect();
    assert_eq!(batches, [100, 100, 50]);
    ours.shared.cache.make_room(cache::MAX_VECTORS - 100, &many(0, 10)).await;
    assert_eq!(stored(&kept).await, 10);
    let error = ours.compare("a", &many(0, cache::MAX_VECTORS + 1)).await.expect_err("too many");
    assert!(error.0.contains("at most 4096 tools"), "{error}");
}

// Promises: AGENT-111
#[tokio::test]
async fn a_search_that_has_no_more_time_leaves_the_rest_to_the_next_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let letters = Letters::new(0);
    let patient = vectors("one", &letters, &kept);
    let hasty = ToolVectors { timeout: TimeSpan::from_millis(20), shared: Arc::clone(&patient.shared) };
    let error = hasty.compare("abc", &texts(&["abc"])).await.expect_err("too late");
    assert!(error.0.contains("letters/one made no vectors within 20ms"), "{error}");
    letters.open.add_permits(1);
    assert_eq!(patient.compare("abc", &texts(&["abc"])).await.expect("compared"), [1.0]);
    assert_eq!(letters.tools(), ["abc"], "it was asked once");
}

// Promises: AGENT-111
#[tokio::test]
async fn a_failure_ends_the_search_and_the_next_one_asks_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let letters = Letters::new(100);
    *letters.fails.lock() = true;
    let ours = vectors("one", &letters, &kept);
    let error = ours.compare("abc", &texts(&["abc"])).await.expect_err("it fails");
    assert!(error.0.contains("too many requests"), "{error}");
    *letters.fails.lock() = false;
    assert_eq!(ours.compare("abc", &texts(&["abc"])).await.expect("compared"), [1.0]);
}

#[tokio::test]
async fn what_is_stored_and_cannot_be_used_is_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let kept = store(&directory).await;
    let namespace = Namespace::of(PluginId::new("agent-tool-vectors").expect("a name"));
    let key = Key::new("of-an-older-version").expect("a key");
    kept.key_values().set(&namespace, &key, vec![1, 2]).await.expect("written");
    let letters = Letters::new(100);
    vectors("one", &letters, &kept).compare("abc", &texts(&["abc"])).await.expect("compared");
    assert_eq!(kept.key_values().get(&namespace.plugin, &key).await.expect("read"), None);
    let distinct: BTreeSet<String> = letters.tools().into_iter().collect();
    assert_eq!(distinct.len(), 1);
}
