//! Where parked calls lie: the agent's own namespace of its key-values.

use std::sync::Arc;

use talon_store::{Error, Key, KeyValues, Namespace, PageRequest, PluginId};

use super::record::Record;

/// The namespace. No plugin's: these key-values are the agent's own database.
const NAMESPACE: &str = "agent-approvals";
/// Each record has a key of its own.
const PREFIX: &str = "approval/";
/// Records a page when they are read.
const PAGE: u32 = 100;

/// Reads and writes records.
#[derive(Clone)]
pub(super) struct Shelf {
    kv: Arc<dyn KeyValues>,
    namespace: Namespace,
}

impl Shelf {
    pub(super) fn new(kv: Arc<dyn KeyValues>) -> Self {
        let plugin = PluginId::new(NAMESPACE).expect("the namespace is a well-formed id");
        Self { kv, namespace: Namespace::of(plugin) }
    }

    /// All records, oldest first. One that cannot be read is removed: it was written by another version, and a call that nobody can
    /// be shown is one that nobody can approve.
    pub(super) async fn load(&self) -> Result<Vec<Record>, Error> {
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

    /// How a record is written; `None` if it is too large for the store.
    pub(super) fn written(record: &Record) -> Option<Vec<u8>> {
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

fn key(id: &str) -> Result<Key, Error> {
    Key::new(format!("{PREFIX}{id}"))
}
