//! The store of parked calls: a key-value namespace of the agent's own database.

use std::sync::Arc;

use talon_store::{Error, InvalidError, Key, KeyValues, Namespace, PageRequest, PluginId};

use super::record::ApprovalRecord;

/// The namespace, in the agent's own database and thus no plugin's.
const NAMESPACE: &str = "agent-approvals";
/// The prefix of each record's key.
const PREFIX: &str = "approval/";
/// Records read per page.
const PAGE: u32 = 100;

/// Reads and writes records.
#[derive(Clone)]
pub(super) struct ApprovalStore {
    kv: Arc<dyn KeyValues>,
    namespace: Namespace,
}

impl ApprovalStore {
    pub(super) fn new(kv: Arc<dyn KeyValues>) -> Self {
        let plugin = PluginId::new(NAMESPACE).expect("the namespace is a well-formed id");
        Self { kv, namespace: Namespace::of(plugin) }
    }

    /// Loads all records, oldest first. Removes a record that cannot be read: another version wrote it, and a
    /// call that cannot be shown cannot be approved.
    pub(super) async fn load(&self) -> Result<Vec<ApprovalRecord>, Error> {
        let mut records = Vec::new();
        let mut page = PageRequest::first(PAGE);
        loop {
            let read = self.kv.entries(&self.namespace.plugin, PREFIX, &page).await?;
            for entry in read.items {
                match serde_json::from_slice(&entry.value) {
                    Ok(record) => records.push(record),
                    Err(error) => {
                        tracing::warn!(target: "agent", key = entry.key.as_str(), %error, "an approval cannot be read and is forgotten");
                        self.kv.delete(&self.namespace.plugin, &entry.key).await?;
                    }
                }
            }
            let Some(next) = read.next else { return Ok(records) };
            page = PageRequest::after(next, PAGE);
        }
    }

    /// Encodes a record; `None` if it is too large for the store.
    pub(super) fn encode(record: &ApprovalRecord) -> Option<Vec<u8>> {
        let value = serde_json::to_vec(record).expect("texts, numbers and maps of them are always JSON");
        (value.len() <= talon_store::limits::MAX_VALUE_BYTES).then_some(value)
    }

    pub(super) async fn put(&self, id: &str, value: Vec<u8>) -> Result<(), Error> {
        self.kv.set(&self.namespace, &key(id)?, value).await
    }

    pub(super) async fn remove(&self, id: &str) -> Result<(), Error> {
        self.kv.delete(&self.namespace.plugin, &key(id)?).await.map(drop)
    }
}

fn key(id: &str) -> Result<Key, InvalidError> {
    Key::new(format!("{PREFIX}{id}"))
}
