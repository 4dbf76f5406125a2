//! The key-values that hold what channels have not finished, in the agent's own database.

use std::sync::Arc;

use talon_store::{CHANNELS_NAMESPACE, Error, Key, KeyValues, Namespace, PageRequest, PluginId};

use super::pending::PendingMessage;

/// Records read at once.
const PAGE: u32 = 100;
/// Messages that are not answered yet.
const MESSAGE: &str = "message/";
/// The number of the last event that was read, by its source.
const CURSOR: &str = "cursor/";
/// Messages that answered a question before their turn came, by channel and event.
const ANSWERED: &str = "answered/";

/// Reads and writes.
#[derive(Clone)]
pub(super) struct ChannelStore {
    kv: Arc<dyn KeyValues>,
    namespace: Namespace,
}

impl ChannelStore {
    pub(super) fn new(kv: Arc<dyn KeyValues>) -> Self {
        let plugin = PluginId::new(CHANNELS_NAMESPACE).expect("the namespace is a well-formed id");
        Self { kv, namespace: Namespace::of(plugin) }
    }

    /// All messages, in the order of their arrival. One that cannot be read is of another version, and stays where it is.
    pub(super) async fn messages(&self) -> Result<Vec<PendingMessage>, Error> {
        let mut messages = Vec::new();
        let mut page = PageRequest::first(PAGE);
        loop {
            let read = self.kv.entries(&self.namespace.plugin, MESSAGE, &page).await?;
            for entry in read.items {
                match serde_json::from_slice(&entry.value) {
                    Ok(message) => messages.push(message),
                    Err(_) => {
                        tracing::warn!(
                            key = entry.key.as_str(),
                            "a message of a channel cannot be read, and is left"
                        );
                    }
                }
            }
            let Some(next) = read.next else { return Ok(messages) };
            page = PageRequest::after(next, PAGE);
        }
    }

    pub(super) async fn put(&self, message: &PendingMessage) -> Result<(), Error> {
        let value = serde_json::to_vec(message).expect("texts, numbers and lists of them are always JSON");
        self.kv.set(&self.namespace, &Key::new(format!("{MESSAGE}{}", message.id))?, value).await
    }

    /// Replaces a message's row, unless it was forgotten meanwhile.
    pub(super) async fn replace(&self, message: &PendingMessage) -> Result<(), Error> {
        let value = serde_json::to_vec(message).expect("texts, numbers and lists of them are always JSON");
        let key = Key::new(format!("{MESSAGE}{}", message.id))?;
        let Some(before) = self.kv.get(&self.namespace.plugin, &key).await? else { return Ok(()) };
        // Only its own task writes a row, so who was faster has removed it.
        self.kv.compare_and_set(&self.namespace, &key, Some(before), Some(value)).await.map(drop)
    }

    /// Whether it was not forgotten meanwhile.
    pub(super) async fn has(&self, message: &PendingMessage) -> Result<bool, Error> {
        let key = Key::new(format!("{MESSAGE}{}", message.id))?;
        Ok(self.kv.get(&self.namespace.plugin, &key).await?.is_some())
    }

    pub(super) async fn remove(&self, id: &str) -> Result<(), Error> {
        self.kv.delete(&self.namespace.plugin, &Key::new(format!("{MESSAGE}{id}"))?).await.map(drop)
    }

    /// Notes that a message answered a question before its turn came, so that it becomes none.
    pub(super) async fn put_answered(&self, channel: &str, event: &str) -> Result<(), Error> {
        self.kv.set(&self.namespace, &answered_key(channel, event)?, Vec::new()).await
    }

    /// Whether a message answered a question before its turn came.
    pub(super) async fn is_answered(&self, channel: &str, event: &str) -> Result<bool, Error> {
        Ok(self.kv.get(&self.namespace.plugin, &answered_key(channel, event)?).await?.is_some())
    }

    /// Forgets that it did, once its event counts as read.
    pub(super) async fn forget_answered(&self, channel: &str, event: &str) -> Result<(), Error> {
        self.kv.delete(&self.namespace.plugin, &answered_key(channel, event)?).await.map(drop)
    }

    pub(super) async fn cursor(&self, source: &str) -> Result<Option<u64>, Error> {
        let value = self.kv.get(&self.namespace.plugin, &Key::new(format!("{CURSOR}{source}"))?).await?;
        Ok(value.and_then(|value| std::str::from_utf8(&value).ok()?.parse().ok()))
    }

    pub(super) async fn set_cursor(&self, source: &str, number: u64) -> Result<(), Error> {
        self.kv
            .set(&self.namespace, &Key::new(format!("{CURSOR}{source}"))?, number.to_string().into_bytes())
            .await
    }
}

fn answered_key(channel: &str, event: &str) -> Result<Key, Error> {
    Ok(Key::new(format!("{ANSWERED}{channel}/{event}"))?)
}

/// Removes what a sender wrote and is not answered yet. What a turn has begun ends with its session.
///
/// # Errors
/// Those of the store.
pub(crate) async fn forget_sender(kv: Arc<dyn KeyValues>, sender: &str) -> Result<(), Error> {
    let store = ChannelStore::new(kv);
    for message in store.messages().await? {
        if message.owner == sender || message.member.as_deref() == Some(sender) {
            store.remove(&message.id).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use talon_store::{Engine, StoreOptions};

    use super::super::inbound::{InboundMessage, MessageSource};
    use super::super::routing::Route;
    use super::*;

    #[tokio::test]
    async fn the_row_of_a_message_that_was_forgotten_does_not_come_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("private").join("agent.db");
        let opened = StoreOptions::new(Engine::Sqlite { path }).open().await.expect("a store");
        let store = ChannelStore::new(opened.key_values());
        let speaker = MessageSource {
            conversation: "7".to_owned(),
            sender_id: "7".to_owned(),
            sender_name: "Ada".to_owned(),
            group_id: None,
        };
        let said = InboundMessage {
            id: "u/7".to_owned(),
            speaker,
            text: "hello".to_owned(),
            files: Vec::new(),
            mentioned: false,
        };
        let route = Route { owner: "ada".to_owned(), member: None };
        let mut message = PendingMessage::new("1".to_owned(), "telegram", said, route);
        store.put(&message).await.expect("stored");
        message.asked = true;
        store.replace(&message).await.expect("stored");
        assert_eq!(store.messages().await.expect("read"), [message.clone()]);
        forget_sender(opened.key_values(), "ada").await.expect("forgotten");
        store.replace(&message).await.expect("nothing to store");
        assert!(!store.has(&message).await.expect("read"));
        store.put_answered("telegram", "u/8").await.expect("stored");
        assert!(!store.is_answered("telegram", "u/7").await.expect("read"));
        assert!(store.is_answered("telegram", "u/8").await.expect("read"));
        store.forget_answered("telegram", "u/8").await.expect("forgotten");
        assert!(!store.is_answered("telegram", "u/8").await.expect("read"));
    }
}
