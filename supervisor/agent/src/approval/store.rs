//! The store of parked calls and of rules: a key-value namespace of the agent's own database.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use talon_store::{
    APPROVAL_RULE_PREFIX, APPROVALS_NAMESPACE, Error, InvalidError, Key, KeyValues, Namespace, PageRequest,
    PluginId,
};

/// Records read per page.
const PAGE: u32 = 100;

/// Reads and writes records of one kind.
#[derive(Clone)]
pub(super) struct ApprovalStore {
    kv: Arc<dyn KeyValues>,
    namespace: Namespace,
    /// The prefix of each record's key.
    prefix: &'static str,
}

impl ApprovalStore {
    /// The store of parked calls.
    pub(super) fn of_approvals(kv: Arc<dyn KeyValues>) -> Self {
        Self::new(kv, "approval/")
    }

    /// The store of rules.
    pub(super) fn of_rules(kv: Arc<dyn KeyValues>) -> Self {
        Self::new(kv, APPROVAL_RULE_PREFIX)
    }

    fn new(kv: Arc<dyn KeyValues>, prefix: &'static str) -> Self {
        let plugin = PluginId::new(APPROVALS_NAMESPACE).expect("the namespace is a well-formed id");
        Self { kv, namespace: Namespace::of(plugin), prefix }
    }

    /// Loads all records, oldest first. Removes a record that cannot be read: another version wrote it, and a
    /// call that cannot be shown cannot be approved.
    pub(super) async fn load<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        let mut records = Vec::new();
        let mut page = PageRequest::first(PAGE);
        loop {
            let read = self.kv.entries(&self.namespace.plugin, self.prefix, &page).await?;
            for entry in read.items {
                match serde_json::from_slice(&entry.value) {
                    Ok(record) => records.push(record),
                    Err(error) => {
                        tracing::warn!(target: "agent", key = entry.key.as_str(), %error, "a record of the approvals cannot be read and is forgotten");
                        self.kv.delete(&self.namespace.plugin, &entry.key).await?;
                    }
                }
            }
            let Some(next) = read.next else { return Ok(records) };
            page = PageRequest::after(next, PAGE);
        }
    }

    /// Encodes a record; `None` if it is too large for the store.
    pub(super) fn encode(record: &impl Serialize) -> Option<Vec<u8>> {
        let value = serde_json::to_vec(record).expect("texts, numbers and maps of them are always JSON");
        (value.len() <= talon_store::limits::MAX_VALUE_BYTES).then_some(value)
    }

    pub(super) async fn put(&self, id: &str, value: Vec<u8>) -> Result<(), Error> {
        self.kv.set(&self.namespace, &self.key(id)?, value).await
    }

    pub(super) async fn remove(&self, id: &str) -> Result<(), Error> {
        self.kv.delete(&self.namespace.plugin, &self.key(id)?).await.map(drop)
    }

    fn key(&self, id: &str) -> Result<Key, InvalidError> {
        Key::new(format!("{}{id}", self.prefix))
    }
}
