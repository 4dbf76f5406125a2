//! Memories by their meaning: their vectors are made in the background, and a request's is compared with them.
//!
//! A memory without a vector is found by its words. What a turn says that may go to no model elsewhere
//! ([`is_confined`](crate::driver::is_confined)) leaves memories with the tag [`LOCAL_TAG`], of which only a model on
//! this machine makes vectors.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use talon_error_chain::error_chain;
use talon_llm::limits::MAX_EMBEDDED_TEXTS;
use talon_llm::model::{ErrorClass, ProviderError};
use talon_llm::route::router::Pins;
use talon_store::{
    MemoryId, MemoryVectors, NearestMemories, NearestQuery, StoredMemory, Vector, VectorCounts, VectorEngine,
};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::driver::{SimilarityError, check_pins};
use crate::embeddings::Embedder;

/// The tag of memories that only models on this machine may see to make vectors of them.
pub(crate) const LOCAL_TAG: &str = "local-only";

/// How many memories are embedded in one request: soon answered by a small model on this machine, and little is lost
/// if it fails.
const BATCH: usize = 32;
const _: () = assert!(BATCH <= MAX_EMBEDDED_TEXTS);
/// The time for such a request. No turn waits for it; a model on this machine may have to be loaded.
const BATCH_TIMEOUT: Duration = Duration::from_secs(60);
/// When it is looked again for memories without a vector if nothing says that there are some: another machine may
/// have written to the same server.
const RECHECK: Duration = Duration::from_secs(300);
/// The wait after the first failure; it doubles up to [`RECHECK`].
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// How long searches go by words after one got no vector, so that not every turn waits for a provider that is gone.
const QUERY_REST: Duration = Duration::from_secs(30);
/// The shortest time between two changes of the vectors' length: a provider that answers with one and then another
/// is not obeyed.
const MIN_CHANGE_INTERVAL: Duration = Duration::from_secs(600);
/// The most memories that are skipped since the model refuses their text. The others are tried again.
const MAX_REFUSED: usize = 1_000;

/// From so many memories on, only those count as near that stand out: by [`STANDING_OUT`] standard deviations of all.
const MIN_SPREAD: u64 = 30;
/// From the fixture of 500 memories: of what is right and among the first five, 99 % stands out so far, and of what
/// is near to requests about something else, a third does not. Below [`MIN_SPREAD`], what is nearer than the mean.
const STANDING_OUT: f32 = 2.5;

/// The memories of a store, by one model.
pub(crate) struct MemoryIndex {
    embedder: Embedder,
    space: String,
    vectors: Arc<dyn MemoryVectors>,
    changed: Arc<Notify>,
    state: Mutex<IndexState>,
}

#[derive(Default)]
struct IndexState {
    /// Whether vectors of other models were deleted.
    cleaned: bool,
    /// How many numbers the stored vectors have.
    numbers: Option<usize>,
    /// Another length that a query's vector had.
    other_numbers: Option<usize>,
    length_changed: Option<Instant>,
    /// Why the last request in the background failed, how long is waited then, and when the next is due.
    failure: Option<(String, Duration, Instant)>,
    /// Why the last query got no vector, and until when none is asked for.
    query_failure: Option<(String, Instant)>,
    /// Memories of which the model makes no vectors.
    refused: BTreeSet<MemoryId>,
}

/// How many memories are found by meaning.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IndexReport {
    /// As provider/name.
    pub(crate) model: String,
    pub(crate) counts: VectorCounts,
    /// Memories of which the model makes no vectors.
    pub(crate) refused: u64,
    pub(crate) engine: VectorEngine,
    /// Why the last request failed.
    pub(crate) failure: Option<String>,
}

impl MemoryIndex {
    /// Vectors of a store by a model. `changed` is notified when a memory was stored.
    pub(crate) fn new(embedder: Embedder, vectors: Arc<dyn MemoryVectors>, changed: Arc<Notify>) -> Self {
        Self { space: embedder.space(), embedder, vectors, changed, state: Mutex::default() }
    }

    /// The model, as provider/name.
    pub(crate) fn model(&self) -> String {
        self.embedder.model()
    }

    /// Says that there is a memory without a vector.
    pub(crate) fn notify(&self) {
        self.changed.notify_one();
    }

    /// The memories near to a text that stand out, nearest first, at most `limit`.
    ///
    /// # Errors
    /// Why the search is by words alone.
    pub(crate) async fn near(
        &self,
        pins: &Pins,
        text: &str,
        owner: &str,
        workflows: bool,
        limit: usize,
    ) -> Result<Vec<StoredMemory>, SimilarityError> {
        check_pins(&self.model(), self.embedder.is_local(), pins)?;
        let vector = self.query(text).await?;
        let query = NearestQuery {
            model: self.space.clone(),
            vector,
            owner: Some(owner.to_owned()),
            workflows,
            limit,
        };
        let near = self.vectors.nearest(&query).await.map_err(unreadable)?;
        Ok(outstanding(near))
    }

    async fn query(&self, text: &str) -> Result<Vector, SimilarityError> {
        let now = Instant::now();
        if let Some((why, until)) = self.state.lock().query_failure.clone()
            && now < until
        {
            return Err(SimilarityError(why));
        }
        let within = self.embedder.keys().timeout;
        let vector = match timeout(within.get(), self.embedder.query(text)).await {
            Ok(Ok(Some(vector))) if !vector.is_empty() => Ok(vector),
            Ok(Ok(_)) => Err(format!("{} gave no vector", self.model())),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => {
                Err(format!("{} made no vector within {within} (models.embeddings.timeout)", self.model()))
            }
        };
        let mut state = self.state.lock();
        let vector = vector.map_err(|why| {
            state.query_failure = Some((why.clone(), Instant::now() + QUERY_REST));
            SimilarityError(why)
        })?;
        state.query_failure = None;
        if state.numbers.is_some_and(|numbers| numbers != vector.len()) {
            state.other_numbers = Some(vector.len());
            drop(state);
            self.changed.notify_one();
            return Err(SimilarityError(format!(
                "{} answers with {} numbers now, and the vectors of memories have another length: they are made again",
                self.model(),
                vector.len()
            )));
        }
        Ok(vector)
    }

    /// Makes some of the missing vectors. Returns how long to wait until the next time; nothing if there are more.
    pub(crate) async fn make_some(&self) -> Duration {
        if let Some((_, _, due)) = &self.state.lock().failure
            && let Some(wait) = due.checked_duration_since(Instant::now()).filter(|wait| !wait.is_zero())
        {
            return wait;
        }
        match self.make_batch().await {
            Ok(made) => {
                self.state.lock().failure = None;
                if made == 0 { RECHECK } else { Duration::ZERO }
            }
            Err(SimilarityError(why)) => {
                tracing::warn!(target: "agent", model = self.model(), why, "memories have no vectors yet; this is tried again");
                let mut state = self.state.lock();
                let before = state.failure.as_ref().map(|(_, wait, _)| *wait * 2);
                let wait = before.unwrap_or(FIRST_WAIT).min(RECHECK);
                state.failure = Some((why, wait, Instant::now() + wait));
                wait
            }
        }
    }

    async fn make_batch(&self) -> Result<usize, SimilarityError> {
        self.clean().await?;
        let refused = self.state.lock().refused.clone();
        let limit = u32::try_from(BATCH + refused.len()).unwrap_or(u32::MAX);
        let missing = self.vectors.without_vector(&self.space, self.except(), limit).await;
        let mut missing = missing.map_err(unreadable)?;
        missing.retain(|memory| !refused.contains(&memory.id));
        missing.truncate(BATCH);
        if missing.is_empty() {
            return Ok(0);
        }
        let made = self.embed(missing).await?;
        let Some((_, first)) = made.first() else { return Ok(0) };
        let numbers = first.len();
        if numbers == 0 || made.iter().any(|(_, vector)| vector.len() != numbers) {
            return Err(SimilarityError(format!("{} gave vectors of several lengths", self.model())));
        }
        if self.state.lock().numbers.is_some_and(|before| before != numbers) {
            self.change_length(numbers).await?;
        }
        self.state.lock().numbers = Some(numbers);
        let count = made.len();
        self.vectors.put(&self.space, made).await.map_err(unreadable)?;
        Ok(count)
    }

    /// Deletes the vectors of other models, once, and those of another length, if the model has changed.
    async fn clean(&self) -> Result<(), SimilarityError> {
        let other = self.state.lock().other_numbers.take();
        if let Some(numbers) = other {
            self.change_length(numbers).await?;
            self.state.lock().numbers = Some(numbers);
        }
        if self.state.lock().cleaned {
            return Ok(());
        }
        let gone = self.vectors.keep_only(&self.space, None).await.map_err(unreadable)?;
        if gone > 0 {
            tracing::info!(target: "agent", model = self.model(), memories = gone, "models.embeddings is another: these memories get new vectors");
        }
        let counts = self.vectors.counts(&self.space, self.except()).await.map_err(unreadable)?;
        let mut state = self.state.lock();
        (state.numbers, state.cleaned) = (counts.numbers, true);
        Ok(())
    }

    /// The model answers with vectors of another length: the others are made again.
    async fn change_length(&self, numbers: usize) -> Result<(), SimilarityError> {
        let now = Instant::now();
        let last = self.state.lock().length_changed;
        if last.is_some_and(|last| now < last + MIN_CHANGE_INTERVAL) {
            return Err(SimilarityError(format!(
                "{} answers with {numbers} numbers and had another length a moment ago: see which model its provider serves",
                self.model()
            )));
        }
        let gone = self.vectors.keep_only(&self.space, Some(numbers)).await.map_err(unreadable)?;
        self.state.lock().length_changed = Some(now);
        tracing::warn!(
            target: "agent", model = self.model(), numbers, memories = gone,
            "the model answers with vectors of another length: these memories get new ones"
        );
        Ok(())
    }

    /// The vectors of memories. Where the model refuses a request, each memory is asked for alone, and those that it
    /// refuses alone are skipped from then on.
    async fn embed(&self, memories: Vec<StoredMemory>) -> Result<Vec<(MemoryId, Vector)>, SimilarityError> {
        let texts: Vec<String> = memories.iter().map(|memory| memory.content.clone()).collect();
        let error = match self.embedder.documents(&texts, BATCH_TIMEOUT).await {
            Ok(vectors) => return Ok(memories.iter().map(|memory| memory.id).zip(vectors).collect()),
            Err(error) => error,
        };
        if memories.len() == 1 || !is_refusal(&error) {
            return Err(SimilarityError(error.to_string()));
        }
        let (mut made, mut refused) = (Vec::new(), Vec::new());
        for (memory, text) in memories.iter().zip(&texts) {
            match self.embedder.documents(std::slice::from_ref(text), BATCH_TIMEOUT).await {
                Ok(vectors) => made.extend(vectors.into_iter().map(|vector| (memory.id, vector))),
                Err(alone) if is_refusal(&alone) => refused.push(memory.id),
                Err(other) => return Err(SimilarityError(other.to_string())),
            }
        }
        // It refuses everything: not the texts are wrong.
        if made.is_empty() {
            return Err(SimilarityError(error.to_string()));
        }
        let mut state = self.state.lock();
        for id in refused {
            tracing::warn!(target: "agent", model = self.model(), memory = %id, "the model makes no vector of this memory, which is found by words alone");
            if state.refused.len() < MAX_REFUSED {
                state.refused.insert(id);
            }
        }
        Ok(made)
    }

    /// How many memories have vectors.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub(crate) async fn report(&self) -> Result<IndexReport, talon_store::Error> {
        let counts = self.vectors.counts(&self.space, self.except()).await?;
        let engine = self.vectors.engine().await?;
        let state = self.state.lock();
        let failure = state.failure.as_ref().map(|(why, ..)| why.clone());
        let of_queries = || state.query_failure.as_ref().map(|(why, _)| why.clone());
        Ok(IndexReport {
            model: self.model(),
            counts,
            refused: state.refused.len() as u64,
            engine,
            failure: failure.or_else(of_queries),
        })
    }

    /// The tag of memories that this model may not see.
    fn except(&self) -> Option<&'static str> {
        (!self.embedder.is_local()).then_some(LOCAL_TAG)
    }
}

/// Whether a provider refuses what it is asked, which it would again.
fn is_refusal(error: &ProviderError) -> bool {
    matches!(error.class, ErrorClass::Request | ErrorClass::Context)
}

fn unreadable(error: talon_store::Error) -> SimilarityError {
    tracing::warn!(target: "agent", error = error_chain(&error), "the vectors of memories cannot be reached");
    SimilarityError("the vectors of memories cannot be reached (see the agent's log)".to_owned())
}

/// The memories that are nearer than most.
pub(super) fn outstanding(near: NearestMemories) -> Vec<StoredMemory> {
    let all = near.all;
    let deviations = if all.compared < MIN_SPREAD { 0.0 } else { STANDING_OUT };
    let least = all.mean + deviations * all.deviation;
    let stands_out = near.memories.into_iter().filter(|near| near.similarity >= least);
    stands_out.map(|near| near.memory).collect()
}

#[cfg(test)]
#[path = "memory_index_tests.rs"]
mod tests;
