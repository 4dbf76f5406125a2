//! The key-values that hold everything of the shadow loop, in the agent's own database.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message;
use talon_proto::agent::{GetGhostResponse, ShadowLogEntry};
use talon_store::{Error, Key, KeyValues, Namespace, PageRequest, PluginId, SHADOW_NAMESPACE, SwapResult};

use super::record::SenderRecord;

/// Records read at once.
const PAGE: u32 = 100;
const SENDER: &str = "sender/";
const GHOST: &str = "ghost/";
const LOG: &str = "log/";
/// Goals of approved ghosts whose turn has not begun.
const GOAL: &str = "goal/";
/// Another value after each time that somebody was forgotten, for other agents with the same database. Names are in the order of bytes, so
/// that a load reads it before all else.
const FORGET_EPOCH: &str = "epoch";

/// Reads and writes.
#[derive(Clone)]
pub(super) struct ShadowStore {
    kv: Arc<dyn KeyValues>,
    namespace: Namespace,
}

/// All that is stored.
#[derive(Default)]
pub(super) struct StoredShadow {
    pub(super) senders: BTreeMap<String, SenderRecord>,
    /// Their values as they are on the disk: a record in memory may know of more events.
    pub(super) sender_values: BTreeMap<String, Vec<u8>>,
    pub(super) ghosts: BTreeMap<String, GetGhostResponse>,
    pub(super) log: BTreeMap<String, ShadowLogEntry>,
    /// By the ids of the ghosts.
    pub(super) goals: BTreeMap<String, String>,
    /// As it was before the rest was read; empty while nobody was forgotten.
    pub(super) forget_epoch: Vec<u8>,
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum GhostWrite {
    Written,
    /// It is another one than was expected; absent if it is not there.
    Differs(Option<Box<GetGhostResponse>>),
}

/// What became of a write of what is known of a person.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SenderWrite {
    /// With the value that is on the disk now.
    Written(Vec<u8>),
    /// It is another one than was expected. Both are absent if it is not there; the record alone if it cannot be read.
    Differs { value: Option<Vec<u8>>, record: Option<Box<SenderRecord>> },
}

/// Whether both are the same apart from their sequences.
pub(super) fn is_same(one: &GetGhostResponse, other: &GetGhostResponse) -> bool {
    let without_sequence = |ghost: &GetGhostResponse| {
        let mut ghost = ghost.clone();
        if let Some(ghost) = &mut ghost.ghost {
            ghost.sequence = 0;
        }
        ghost
    };
    without_sequence(one) == without_sequence(other)
}

impl ShadowStore {
    pub(super) fn new(kv: Arc<dyn KeyValues>) -> Self {
        let plugin = PluginId::new(SHADOW_NAMESPACE).expect("the namespace is a well-formed id");
        Self { kv, namespace: Namespace::of(plugin) }
    }

    /// Loads everything. A record that cannot be read is of another version, and stays where it is.
    pub(super) async fn load(&self) -> Result<StoredShadow, Error> {
        let mut stored = StoredShadow::default();
        let mut page = PageRequest::first(PAGE);
        loop {
            let read = self.kv.entries(&self.namespace.plugin, "", &page).await?;
            for entry in read.items {
                let (key, value) = (entry.key.as_str(), entry.value.as_slice());
                let known = if let Some(sender) = key.strip_prefix(SENDER) {
                    stored.sender_values.insert(sender.to_owned(), value.to_vec());
                    let record = serde_json::from_slice(value).ok();
                    record.map(|record| drop(stored.senders.insert(sender.to_owned(), record)))
                } else if let Some(id) = key.strip_prefix(GHOST) {
                    let ghost = GetGhostResponse::decode(value).ok();
                    ghost.map(|ghost| drop(stored.ghosts.insert(id.to_owned(), ghost)))
                } else if let Some(id) = key.strip_prefix(LOG) {
                    let entry = ShadowLogEntry::decode(value).ok();
                    entry.map(|entry| drop(stored.log.insert(id.to_owned(), entry)))
                } else if let Some(id) = key.strip_prefix(GOAL) {
                    let goal = String::from_utf8(value.to_vec()).ok();
                    goal.map(|goal| drop(stored.goals.insert(id.to_owned(), goal)))
                } else if key == FORGET_EPOCH {
                    stored.forget_epoch = value.to_vec();
                    Some(())
                } else {
                    None
                };
                if known.is_none() {
                    tracing::warn!(target: "agent", key, "a record of the shadow loop cannot be read and does not count");
                }
            }
            let Some(next) = read.next else { return Ok(stored) };
            page = PageRequest::after(next, PAGE);
        }
    }

    /// Which value says that nobody was forgotten since then; empty while nobody was.
    pub(super) async fn forget_epoch(&self) -> Result<Vec<u8>, Error> {
        let value = self.kv.get(&self.namespace.plugin, &Key::new(FORGET_EPOCH)?).await?;
        Ok(value.unwrap_or_default())
    }

    /// Has all agents look at what is left.
    pub(super) async fn advance_forget_epoch(&self) -> Result<(), Error> {
        let epoch = ulid::Ulid::generate().to_bytes().to_vec();
        self.kv.set(&self.namespace, &Key::new(FORGET_EPOCH)?, epoch).await
    }

    /// Stores what is known of a person if this value is on the disk; absent: none.
    pub(super) async fn swap_sender(
        &self,
        record: &SenderRecord,
        before: Option<Vec<u8>>,
    ) -> Result<SenderWrite, Error> {
        let value = serde_json::to_vec(record).expect("texts, numbers and maps of them are always JSON");
        let key = Key::new(format!("{SENDER}{}", record.sender))?;
        let swapped = self.kv.compare_and_set(&self.namespace, &key, before, Some(value.clone())).await?;
        Ok(match swapped {
            SwapResult::Swapped => SenderWrite::Written(value),
            SwapResult::Conflict(value) => {
                let record = value.as_deref().and_then(|value| serde_json::from_slice(value).ok());
                SenderWrite::Differs { value, record: record.map(Box::new) }
            }
        })
    }

    /// A ghost as it is on the disk.
    pub(super) async fn ghost(&self, id: &str) -> Result<Option<GetGhostResponse>, Error> {
        let value = self.kv.get(&self.namespace.plugin, &Key::new(format!("{GHOST}{id}"))?).await?;
        Ok(value.and_then(|bytes| GetGhostResponse::decode(&*bytes).ok()))
    }

    /// A goal as it is on the disk.
    pub(super) async fn goal(&self, id: &str) -> Result<Option<String>, Error> {
        let value = self.kv.get(&self.namespace.plugin, &Key::new(format!("{GOAL}{id}"))?).await?;
        Ok(value.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    /// Stores a ghost that is not there yet.
    pub(super) async fn create_ghost(&self, id: &str, ghost: &GetGhostResponse) -> Result<GhostWrite, Error> {
        self.swap_ghost(id, None, ghost).await
    }

    /// Stores a ghost if it is as it is known here.
    pub(super) async fn replace_ghost(
        &self,
        id: &str,
        before: &GetGhostResponse,
        next: &GetGhostResponse,
    ) -> Result<GhostWrite, Error> {
        let written = self.swap_ghost(id, Some(before.encode_to_vec()), next).await?;
        // The sequence is of one process: another agent may have numbered the same ghost otherwise.
        match &written {
            GhostWrite::Differs(Some(current)) if is_same(current, before) => {
                self.swap_ghost(id, Some(current.encode_to_vec()), next).await
            }
            _ => Ok(written),
        }
    }

    async fn swap_ghost(
        &self,
        id: &str,
        expected: Option<Vec<u8>>,
        next: &GetGhostResponse,
    ) -> Result<GhostWrite, Error> {
        let key = Key::new(format!("{GHOST}{id}"))?;
        let swapped =
            self.kv.compare_and_set(&self.namespace, &key, expected, Some(next.encode_to_vec())).await?;
        Ok(match swapped {
            SwapResult::Swapped => GhostWrite::Written,
            // One that cannot be read is of another release, and stays.
            SwapResult::Conflict(current) => GhostWrite::Differs(
                current.and_then(|bytes| GetGhostResponse::decode(&*bytes).ok()).map(Box::new),
            ),
        })
    }

    pub(super) async fn put_log(&self, entry: &ShadowLogEntry) -> Result<(), Error> {
        self.put(LOG, &entry.id, entry.encode_to_vec()).await
    }

    /// Stores a goal. Returns the one that was there: another agent may have stored it, or this one before it was killed.
    pub(super) async fn put_goal(&self, id: &str, goal: &str) -> Result<Option<Vec<u8>>, Error> {
        let (key, mut before) = (Key::new(format!("{GOAL}{id}"))?, None);
        loop {
            let next = Some(goal.as_bytes().to_vec());
            match self.kv.compare_and_set(&self.namespace, &key, before.clone(), next).await? {
                SwapResult::Swapped => return Ok(before),
                // Each conflict is a write of another agent.
                SwapResult::Conflict(current) => before = current,
            }
        }
    }

    /// Has a goal be as it was before it was stored, unless another agent stored or removed one since then.
    pub(super) async fn take_back_goal(
        &self,
        id: &str,
        goal: &str,
        before: Option<Vec<u8>>,
    ) -> Result<(), Error> {
        let key = Key::new(format!("{GOAL}{id}"))?;
        let expected = Some(goal.as_bytes().to_vec());
        self.kv.compare_and_set(&self.namespace, &key, expected, before).await.map(drop)
    }

    pub(super) async fn remove_sender(&self, sender: &str) -> Result<(), Error> {
        self.remove(SENDER, sender).await
    }

    pub(super) async fn remove_ghost(&self, id: &str) -> Result<(), Error> {
        self.remove(GHOST, id).await
    }

    pub(super) async fn remove_log(&self, id: &str) -> Result<(), Error> {
        self.remove(LOG, id).await
    }

    pub(super) async fn remove_goal(&self, id: &str) -> Result<(), Error> {
        self.remove(GOAL, id).await
    }

    async fn put(&self, kind: &str, id: &str, value: Vec<u8>) -> Result<(), Error> {
        self.kv.set(&self.namespace, &Key::new(format!("{kind}{id}"))?, value).await
    }

    async fn remove(&self, kind: &str, id: &str) -> Result<(), Error> {
        self.kv.delete(&self.namespace.plugin, &Key::new(format!("{kind}{id}"))?).await.map(drop)
    }
}
