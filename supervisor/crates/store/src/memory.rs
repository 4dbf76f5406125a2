//! Long-term memory beyond one conversation: facts, preferences, and workflows that succeeded.

mod query;
mod record;
mod vectors;
mod workflow;

use async_trait::async_trait;

use crate::error::Error;
use crate::id::MemoryId;
use crate::page::{Page, PageRequest};

pub use query::{ForgetSelector, MemoryQuery, RecalledWorkflow};
pub(crate) use query::{check_query, check_recall, rank_by_shared_words, rank_by_similarity};
pub(crate) use record::{MemoryColumns, stored_id};
pub use record::{NewMemory, OWNER_TAG, StoredMemory, UpsertedMemory, WORKFLOW_TAG};
pub use vectors::{
    MemoryVectors, NearMemory, NearestMemories, NearestQuery, Spread, VectorCounts, VectorEngine,
};
pub(crate) use vectors::{check_model, nearest_first};
pub use workflow::{Step, Workflow};

/// The memories.
#[async_trait]
pub trait Memory: Send + Sync {
    /// Whether there may be any; `false` only if nothing would be found.
    fn may_have_any(&self) -> bool {
        true
    }

    /// Stores a memory. A known workflow, with this trigger, these steps and these owners, is counted
    /// instead.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    async fn remember(&self, memory: NewMemory) -> Result<UpsertedMemory, Error>;

    /// A memory, `None` if there is none.
    ///
    /// # Errors
    /// When the database cannot be read.
    async fn get(&self, id: MemoryId) -> Result<Option<StoredMemory>, Error>;

    /// The matching memories, best first; without a text, newest first.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a text without words.
    async fn search(&self, query: &MemoryQuery, page: &PageRequest) -> Result<Page<StoredMemory>, Error>;

    /// The workflows whose trigger and steps are similar to a request, most similar first. With an `owner`, a
    /// whole tag that begins with [`OWNER_TAG`], only those of that owner and those without an owner; others
    /// do not count against the limit.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a request that is too long.
    async fn recall(
        &self,
        request: &str,
        owner: Option<&str>,
        limit: usize,
    ) -> Result<Vec<RecalledWorkflow>, Error>;

    /// The memories other than workflows that share words with a text, those that share most first. Other
    /// forms of a word count too, but a few equal letters are not enough. `owner` is as in
    /// [`recall`](Self::recall).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a text that is too long.
    async fn related(
        &self,
        text: &str,
        owner: Option<&str>,
        limit: usize,
    ) -> Result<Vec<StoredMemory>, Error>;

    /// Deletes memories; returns how many.
    ///
    /// # Errors
    /// When the database cannot be written.
    async fn forget(&self, what: &ForgetSelector) -> Result<u64, Error>;

    /// Imports a memory from another store, with its id and times; returns whether it was new. An existing
    /// one, by its id or as the same workflow, is not changed.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    async fn import(&self, memory: StoredMemory) -> Result<bool, Error>;
}
