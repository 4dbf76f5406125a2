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
    pub(super) ghosts: BTreeMap<String, GetGhostResponse>,
    pub(super) log: BTreeMap<String, ShadowLogEntry>,
    /// By the ids of the ghosts.
    pub(super) goals: BTreeMap<String, String>,
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum GhostWrite {
    Written,
    /// It is another one than was expected; absent if it is not there.
    Differs(Option<GetGhostResponse>),
}

fn is_same(one: &GetGhostResponse, other: &GetGhostResponse) -> bool {
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

    pub(super) async fn put_sender(&self, record: &SenderRecord) -> Result<(), Error> {
        let value = serde_json::to_vec(record).expect("texts, numbers and maps of them are always JSON");
        self.put(SENDER, &record.sender, value).await
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
            SwapResult::Conflict(current) => {
                GhostWrite::Differs(current.and_then(|bytes| GetGhostResponse::decode(&*bytes).ok()))
            }
        })
    }

    pub(super) async fn put_log(&self, entry: &ShadowLogEntry) -> Result<(), Error> {
        self.put(LOG, &entry.id, entry.encode_to_vec()).await
    }

    /// Stores a goal. Returns whether there was none: another agent may have stored one, whose turn is its own.
    pub(super) async fn put_goal(&self, id: &str, goal: &str) -> Result<bool, Error> {
        let (key, bytes) = (Key::new(format!("{GOAL}{id}"))?, goal.as_bytes().to_vec());
        let created = self.kv.compare_and_set(&self.namespace, &key, None, Some(bytes.clone())).await?;
        if created == SwapResult::Swapped {
            return Ok(true);
        }
        self.put(GOAL, id, bytes).await.map(|()| false)
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
