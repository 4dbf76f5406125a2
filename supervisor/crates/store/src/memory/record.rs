//! A memory as a value: new and stored.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::workflow::Workflow;
use crate::error::Error;
use crate::id::MemoryId;
use crate::limits::{MAX_MEMORY_BYTES, MAX_TAGS, count, name, size};
use crate::time::Timestamp;

/// The tag of workflows, and of nothing else.
pub const WORKFLOW_TAG: &str = "workflow";
/// The prefix of the tag that names a memory's owner: `sender:ada`. A memory without such a tag belongs to
/// everyone.
pub const OWNER_TAG: &str = "sender:";

/// A memory to store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewMemory {
    /// The content. A workflow may leave this empty: its trigger and steps describe it then.
    pub content: String,
    /// Words to find it by, in any order, without duplicates.
    pub tags: BTreeSet<String>,
    /// Its source: a session, a person, an import.
    pub source: String,
    /// The steps, if this is a workflow, which also gets the tag of workflows.
    pub workflow: Option<Workflow>,
}

impl NewMemory {
    /// A workflow that succeeded or failed.
    #[must_use]
    pub fn workflow(workflow: Workflow, source: impl Into<String>) -> Self {
        Self { workflow: Some(workflow), source: source.into(), ..Self::default() }
    }

    /// The memory as it is stored.
    pub(crate) fn checked(self, now: Timestamp) -> Result<StoredMemory, Error> {
        let Self { mut content, mut tags, source, workflow } = self;
        if let Some(workflow) = &workflow {
            tags.insert(WORKFLOW_TAG.to_owned());
            if content.is_empty() {
                content = workflow.describe();
            }
        }
        let id = MemoryId::generate();
        let memory =
            StoredMemory { id, content, tags, source, workflow, created_at: now, count: 1, last_used: now };
        memory.check()?;
        Ok(memory)
    }
}

/// A stored memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMemory {
    /// Its id.
    pub id: MemoryId,
    /// The content.
    pub content: String,
    /// Words to find it by.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<String>,
    /// Its source.
    pub source: String,
    /// The steps, if this is a workflow.
    #[serde(flatten)]
    pub workflow: Option<Workflow>,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// How often it was recorded: more than once for a repeated workflow.
    pub count: u64,
    /// When it was last recorded.
    pub last_used: Timestamp,
}

impl StoredMemory {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.content.is_empty() {
            return Err(Error::invalid("a memory's content", "must not be empty"));
        }
        size("a memory's content", self.content.len(), MAX_MEMORY_BYTES)?;
        name("a memory's source", &self.source)?;
        count("a memory's tags", self.tags.len(), MAX_TAGS)?;
        self.tags.iter().try_for_each(|tag| name("a tag", tag))?;
        if self.workflow.is_some() != self.tags.contains(WORKFLOW_TAG) {
            let why = format!(
                "is the tag of memories that have a trigger and steps, and of those alone: `{WORKFLOW_TAG}`"
            );
            return Err(Error::invalid("this tag", why));
        }
        if i64::try_from(self.count).is_err() {
            return Err(Error::invalid("a memory's count", "is too large"));
        }
        self.workflow.as_ref().map_or(Ok(()), Workflow::check)
    }

    /// The tags that name its owners; none: it belongs to everyone.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        self.tags.iter().map(String::as_str).filter(|tag| tag.starts_with(OWNER_TAG))
    }

    /// The fingerprint of its workflow with its owners, if it is one.
    pub(crate) fn fingerprint(&self) -> Option<[u8; 32]> {
        self.workflow.as_ref().map(|workflow| workflow.fingerprint(self.owners()))
    }

    /// The fingerprint of its workflow without owners. Earlier versions used it for every workflow; now it
    /// means that it belongs to everyone.
    pub(crate) fn ownerless_fingerprint(&self) -> Option<[u8; 32]> {
        self.workflow.as_ref().map(|workflow| workflow.fingerprint(std::iter::empty()))
    }

    /// Its workflow as it is stored: JSON.
    pub(crate) fn workflow_json(&self) -> Option<String> {
        let json =
            |workflow| serde_json::to_string(workflow).expect("texts and lists of them are always JSON");
        self.workflow.as_ref().map(json)
    }

    /// Its size in a page.
    pub(crate) fn weight(&self) -> usize {
        let tags: usize = self.tags.iter().map(String::len).sum();
        self.content.len() + tags + self.workflow.as_ref().map_or(0, |workflow| workflow.describe().len())
    }

    /// The text that a search covers. Tags are not part of it: they have their own filters.
    pub(crate) fn search_text(&self) -> String {
        self.workflow.as_ref().map_or_else(
            || self.content.clone(),
            |workflow| format!("{}\n{}", self.content, workflow.describe()),
        )
    }
}

/// The columns of a stored memory, which the engines read alike.
pub(crate) struct MemoryColumns {
    pub(crate) id: String,
    pub(crate) content: String,
    pub(crate) tags: BTreeSet<String>,
    pub(crate) source: String,
    /// As [`StoredMemory::workflow_json`].
    pub(crate) workflow: Option<String>,
    pub(crate) created_at_ms: i64,
    pub(crate) count: u64,
    pub(crate) last_used_ms: i64,
}

impl TryFrom<MemoryColumns> for StoredMemory {
    type Error = Error;

    fn try_from(columns: MemoryColumns) -> Result<Self, Error> {
        let workflow = columns.workflow.map(|text| serde_json::from_str(&text)).transpose();
        Ok(Self {
            id: stored_id(&columns.id)?,
            content: columns.content,
            tags: columns.tags,
            source: columns.source,
            workflow: workflow.map_err(|error| Error::unreadable("memory's workflow", error))?,
            created_at: Timestamp::from_millis(columns.created_at_ms),
            count: columns.count,
            last_used: Timestamp::from_millis(columns.last_used_ms),
        })
    }
}

/// A memory's id as it stands in the database.
pub(crate) fn stored_id(text: &str) -> Result<MemoryId, Error> {
    MemoryId::new(text).map_err(|error| Error::unreadable("memory's id", error))
}

/// The result of [`Memory::remember`](super::Memory::remember).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpsertedMemory {
    /// The memory as it is now.
    pub memory: StoredMemory,
    /// Whether it is new.
    pub new: bool,
}
